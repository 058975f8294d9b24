"""The broker's configuration: Kafka's property names, typed, from three layers.

    dynamic for this broker  >  dynamic for all brokers  >  static (server.properties, -X, flags)  >  default

The static layer is given once to `load`; `reconfigure` replaces the two dynamic ones. The object is live: who holds it
sees the change at the next read, and who must act on a change registers with `on_change`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import IntEnum
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

from ottla.common.config import names
from ottla.common.config.cluster import IdentitySettings, ProducerSettings, TopicCreationSettings
from ottla.common.config.configuration import Configuration
from ottla.common.config.groups import ClassicGroupSettings, ConsumerGroupSettings, OffsetSettings
from ottla.common.config.listeners import Listener, parse_listeners
from ottla.common.config.logs import LogCleanerSettings, LogDefaultSettings, LogPlaceSettings
from ottla.common.config.network import NetworkSettings
from ottla.common.config.not_acted_on import settings_not_acted_on
from ottla.common.config.setting import Setting
from ottla.common.errors import OttlaError


class Source(IntEnum):
    """Where a value comes from, under the wire ids of DescribeConfigs."""

    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    DYNAMIC_CLIENT_METRICS_CONFIG = 7
    DYNAMIC_GROUP_CONFIG = 8


_DYNAMIC_TO_STATIC = (
    Source.DYNAMIC_BROKER_CONFIG,
    Source.DYNAMIC_DEFAULT_BROKER_CONFIG,
    Source.STATIC_BROKER_CONFIG,
)


class SourcedText(NamedTuple):
    name: str
    text: str | None
    source: Source


ChangeListener = Callable[[frozenset[str]], None]


class BrokerConfig(
    IdentitySettings,
    NetworkSettings,
    TopicCreationSettings,
    LogPlaceSettings,
    LogDefaultSettings,
    LogCleanerSettings,
    ProducerSettings,
    ClassicGroupSettings,
    ConsumerGroupSettings,
    OffsetSettings,
):
    # Sentences for the log at start-up.
    warnings: tuple[str, ...]
    # The listeners that serve clients.
    endpoints: tuple[Listener, ...]
    data_dirs: tuple[str, ...]

    def __init__(self, properties: Mapping[str, str]) -> None:
        static, warnings = names.recognise(properties, self.known())
        self.__dict__.update(
            _layers={Source.STATIC_BROKER_CONFIG: MappingProxyType(static)},
            _listeners=[],
            warnings=tuple(warnings),
        )
        self._apply({setting: self._effective(setting) for setting in self.known().values()})
        self._settle()

    @classmethod
    def load(cls, properties: Mapping[str, str]) -> BrokerConfig:
        """From text; OttlaError names the property that is unknown or has a wrong value."""
        return cls(properties)

    @classmethod
    @cache
    def known(cls) -> Mapping[str, Setting[Any]]:
        """Every property of a Kafka 4.3 broker, including those without effect here."""
        others = {setting.name: setting for setting in settings_not_acted_on()}
        return MappingProxyType({**cls.definitions(), **others})

    def value(self, name: str) -> Any:
        """The effective value of any known property; typed attributes are the better way for those we act on."""
        return self.__dict__[self.known()[name].attribute]

    def explain(self, name: str) -> Iterator[SourcedText]:
        """All values that layers give to one property, the effective one first, the default last."""
        for source in _DYNAMIC_TO_STATIC:
            text = self.layer(source).get(name)
            if text is not None:
                yield SourcedText(name, text, source)
        setting = self.known().get(name)
        if setting is not None and setting.default is not None:
            yield SourcedText(name, setting.default_text, Source.DEFAULT_CONFIG)

    def layer(self, source: Source) -> Mapping[str, str]:
        layers: dict[Source, Mapping[str, str]] = self.__dict__["_layers"]
        return layers.get(source, {})

    def on_change(self, listener: ChangeListener) -> None:
        """After each dynamic change `listener` is given the names of the properties whose value is different now."""
        self.__dict__["_listeners"].append(listener)

    def reconfigure(self, cluster: Mapping[str, str], broker: Mapping[str, str]) -> frozenset[str]:
        """Replace both dynamic layers; all or nothing: a wrong value raises and changes nothing."""
        before = dict(self.__dict__)
        self.__dict__["_layers"] = {
            **before["_layers"],
            Source.DYNAMIC_DEFAULT_BROKER_CONFIG: MappingProxyType(dict(cluster)),
            Source.DYNAMIC_BROKER_CONFIG: MappingProxyType(dict(broker)),
        }
        try:
            self._apply({setting: self._effective(setting) for setting in self.known().values()})
            self._settle()
        except OttlaError:
            self.__dict__.update(before)
            raise
        changed = frozenset(s.name for s in self.known().values() if before[s.attribute] != self.__dict__[s.attribute])
        if changed:
            for listener in tuple(self.__dict__["_listeners"]):
                listener(changed)
        return changed

    def _effective(self, setting: Setting[Any]) -> Any:
        for source in _DYNAMIC_TO_STATIC:
            text = self.layer(source).get(setting.name)
            if text is not None:
                return setting.parse(text)
        return setting.default

    def _settle(self) -> None:
        """What follows from several properties together."""
        self.__dict__["node_id"] = _node_id(self, self.layer(Source.STATIC_BROKER_CONFIG))
        dirs = self.log_dirs if self.log_dirs is not None else self.log_dir
        self.__dict__["data_dirs"] = _distinct_dirs(dirs)
        self.__dict__["endpoints"] = parse_listeners(
            self.listeners,
            self.advertised_listeners,
            self.listener_security_protocol_map,
            self.controller_listener_names,
        )
        _check_together(self)


def _node_id(config: BrokerConfig, static: Mapping[str, str]) -> int:
    if "node.id" not in static and "broker.id" in static and config.broker_id >= 0:
        return config.broker_id
    if "broker.id" in static and config.broker_id not in (-1, config.node_id):
        raise OttlaError(f"node.id is {config.node_id} and broker.id is {config.broker_id}: give only node.id.")
    return config.node_id


def _distinct_dirs(dirs: Sequence[str]) -> tuple[str, ...]:
    if not dirs or "" in dirs:
        raise OttlaError("log.dirs must name at least one directory, separated by commas.")
    if len(set(dirs)) < len(dirs):
        raise OttlaError(f"log.dirs names a directory twice: {', '.join(dirs)}.")
    return tuple(dirs)


def _check_together(config: BrokerConfig) -> None:
    """Rules over more than one property, as Kafka has them."""
    for retention in ("log.retention.ms", "log.retention.minutes", "log.retention.hours"):
        if config.value(retention) == 0:
            raise OttlaError(f"{retention} must be -1 (without limit) or at least 1.")
    inter_broker = config.inter_broker_listener_name
    if inter_broker and inter_broker.upper() not in {listener.name for listener in config.endpoints}:
        raise OttlaError(f"inter.broker.listener.name is {inter_broker}, which is not among the listeners.")
    for low, middle, high in _ORDERED:
        if not config.value(low) <= config.value(middle) <= config.value(high):
            raise OttlaError(f"{middle} must lie between {low} and {high}.")


_ORDERED = tuple(
    (f"group.consumer.min.{what}", f"group.consumer.{what}", f"group.consumer.max.{what}")
    for what in ("session.timeout.ms", "heartbeat.interval.ms", "assignment.interval.ms")
)

__all__ = ["BrokerConfig", "ChangeListener", "Configuration", "Source", "SourcedText"]
