"""The broker's configuration: Kafka's property names, typed, from three layers.

    dynamic for this broker  >  dynamic for all brokers  >  static (server.properties, -X, flags)  >  default

The static layer is given once to `load`; `reconfigure` replaces the two dynamic ones. The object is live: who holds it
sees the change at the next read, and who must act on a change registers with `on_change`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import IntEnum
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

from ottla.common.config import names
from ottla.common.config.cluster import IdentitySettings, LeaderSettings, ProducerSettings, TopicCreationSettings
from ottla.common.config.consistency import check_together
from ottla.common.config.groups import ClassicGroupSettings, ConsumerGroupSettings, OffsetSettings
from ottla.common.config.listeners import Listener, listener_text, parse_listeners
from ottla.common.config.logs import LogCleanerSettings, LogDefaultSettings, LogPlaceSettings
from ottla.common.config.network import NetworkSettings
from ottla.common.config.not_acted_on import settings_not_acted_on
from ottla.common.config.observing import ObservingSettings
from ottla.common.config.quotas import QuotaSettings
from ottla.common.config.replication import ReplicationSettings
from ottla.common.config.security import AccessSettings, AuditSettings, SaslSettings, TlsSettings, TokenSettings
from ottla.common.config.setting import Setting
from ottla.common.config.transactions import TransactionSettings
from ottla.common.config.zookeeper import ZookeeperSettings
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
    ZookeeperSettings,
    LeaderSettings,
    NetworkSettings,
    TopicCreationSettings,
    LogPlaceSettings,
    LogDefaultSettings,
    LogCleanerSettings,
    ReplicationSettings,
    ProducerSettings,
    ClassicGroupSettings,
    ConsumerGroupSettings,
    OffsetSettings,
    TransactionSettings,
    TlsSettings,
    SaslSettings,
    TokenSettings,
    AccessSettings,
    AuditSettings,
    QuotaSettings,
    ObservingSettings,
):
    # Sentences for the log at start-up.
    warnings: tuple[str, ...]
    # The listeners that serve clients.
    endpoints: tuple[Listener, ...]
    data_dirs: tuple[str, ...]

    def __init__(self, properties: Mapping[str, str]) -> None:
        static, warnings = names.recognise(properties, self.known())
        self.__dict__.update(_listeners=[], _trials=[], warnings=tuple(warnings))
        self._fill({Source.STATIC_BROKER_CONFIG: MappingProxyType(static)})

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

    def of_listener(self, listener: str, name: str, mechanism: str = "") -> Any:
        """The value that a property has for one listener, or for one mechanism of it."""
        own = self._own_text(listener, name, mechanism)
        return self.value(name) if own is None else self.known()[name].parse(own)

    def is_own(self, listener: str, name: str) -> bool:
        """Whether the listener has a value of its own."""
        return self._own_text(listener, name, "") is not None

    def is_set(self, name: str) -> bool:
        """Whether any layer gives a value, be it that of the default."""
        return any(name in self.layer(source) for source in _DYNAMIC_TO_STATIC)

    @property
    def listener_of_brokers(self) -> Listener:
        """Through which brokers of a cluster talk to each other. Raises OttlaError if it is not among the listeners."""
        name = self.inter_broker_listener_name
        if not name and not self.is_set("security.inter.broker.protocol"):
            return self.endpoints[0]
        wanted = (name or self.security_inter_broker_protocol).upper()
        for listener in self.endpoints:
            if listener.name == wanted:
                return listener
        setting = "inter.broker.listener.name" if name else "security.inter.broker.protocol"
        raise OttlaError(f"{setting} is {name or wanted}, which is not among the listeners.")

    def _own_text(self, listener: str, name: str, mechanism: str) -> str | None:
        key = names.of_listener(listener, name, mechanism)
        for source in _DYNAMIC_TO_STATIC:
            if (text := self.layer(source).get(key)) is not None:
                return text
        return None

    def _of_listeners(self) -> set[tuple[str, str]]:
        """What is given for one listener alone, with the value that counts."""
        found: dict[str, str] = {}
        for source in reversed(_DYNAMIC_TO_STATIC):
            found |= {name: text for name, text in self.layer(source).items() if name.startswith(names.LISTENER_PREFIX)}
        return set(found.items())

    def explain_listener(self, name: str) -> Iterator[SourcedText]:
        """All values that layers give to a property of one listener, the effective one first."""
        for source in _DYNAMIC_TO_STATIC:
            if (text := self.layer(source).get(name)) is not None:
                yield SourcedText(name, text, source)

    @property
    def names_of_listeners(self) -> list[str]:
        """All that are given for one listener alone."""
        return sorted(name for name, _ in self._of_listeners())

    def explain(self, name: str) -> Iterator[SourcedText]:
        """All values that layers give to one property, the effective one first, the default last."""
        setting = self.known()[name]
        for source in _DYNAMIC_TO_STATIC:
            text = self.layer(source).get(name)
            if text is not None:
                yield SourcedText(name, setting.text(setting.parse(text)), source)
        if setting.default is not None:
            yield SourcedText(name, setting.default_text, Source.DEFAULT_CONFIG)

    def layer(self, source: Source) -> Mapping[str, str]:
        layers: dict[Source, Mapping[str, str]] = self.__dict__["_layers"]
        return layers.get(source, {})

    def on_change(self, listener: ChangeListener) -> None:
        """After each dynamic change `listener` is given the names of the properties whose value is different now."""
        self.__dict__["_listeners"].append(listener)

    def on_trial(self, trial: Callable[[BrokerConfig], None]) -> None:
        """`trial` is asked before this broker's own settings change: it raises OttlaError for what cannot be used."""
        self.__dict__["_trials"].append(trial)

    def try_out(self, wanted: BrokerConfig) -> None:
        for trial in self.__dict__["_trials"]:
            trial(wanted)

    def reconfigured(self, cluster: Mapping[str, str], broker: Mapping[str, str]) -> BrokerConfig:
        """What this configuration would be with other dynamic layers; OttlaError if a value is wrong."""
        trial = object.__new__(BrokerConfig)
        trial.__dict__.update(_listeners=[], _trials=[], warnings=self.warnings)
        trial._fill(
            {
                Source.STATIC_BROKER_CONFIG: self.layer(Source.STATIC_BROKER_CONFIG),
                Source.DYNAMIC_DEFAULT_BROKER_CONFIG: MappingProxyType(dict(cluster)),
                Source.DYNAMIC_BROKER_CONFIG: MappingProxyType(dict(broker)),
            }
        )
        return trial

    def reconfigure(self, cluster: Mapping[str, str], broker: Mapping[str, str]) -> frozenset[str]:
        """Replace both dynamic layers; all or nothing: a wrong value raises and changes nothing."""
        known_layers = self.layer(Source.DYNAMIC_DEFAULT_BROKER_CONFIG), self.layer(Source.DYNAMIC_BROKER_CONFIG)
        if known_layers == (cluster, broker):
            return frozenset()  # as at most starts: there are none
        trial = self.reconfigured(cluster, broker)
        new = dict(trial.__dict__, _listeners=self.__dict__["_listeners"], _trials=self.__dict__["_trials"])
        known = self.known().values()
        changed = frozenset(
            setting.name for setting in known if self.__dict__[setting.attribute] != new[setting.attribute]
        ) | {name for name, _ in self._of_listeners() ^ trial._of_listeners()}
        self.__dict__.update(new)
        if changed:
            for listener in tuple(new["_listeners"]):
                listener(changed)
        return changed

    def settle_advertised(self, addresses: Mapping[str, tuple[str, int]]) -> None:
        """Free ports are bound and hosts chosen now: where advertised.listeners is given, it says what became of it."""
        static = self.layer(Source.STATIC_BROKER_CONFIG)
        if "advertised.listeners" in static:
            text = ",".join(listener_text(name, host, port) for name, (host, port) in addresses.items())
            layers = {**self.__dict__["_layers"], Source.STATIC_BROKER_CONFIG: {**static, "advertised.listeners": text}}
            self._fill(layers)

    def _fill(self, layers: Mapping[Source, Mapping[str, str]]) -> None:
        self.__dict__["_layers"] = layers
        self._apply({setting: self._effective(setting) for setting in self.known().values()})
        self.__dict__["node_id"] = _node_id(self)
        self.__dict__["data_dirs"] = self.log_dirs if self.log_dirs is not None else self.log_dir
        self.__dict__["endpoints"] = parse_listeners(
            self.listeners,
            self.advertised_listeners,
            self.listener_security_protocol_map,
            self.controller_listener_names,
        )
        for layer in layers.values():
            names.check_listener_values(layer, self.known())
        check_together(self)

    def _effective(self, setting: Setting[Any]) -> Any:
        for source in _DYNAMIC_TO_STATIC:
            text = self.layer(source).get(setting.name)
            if text is not None:
                return setting.parse(text)
        return setting.default


def _node_id(config: BrokerConfig) -> int:
    static = config.layer(Source.STATIC_BROKER_CONFIG)
    if "node.id" not in static and config.broker_id >= 0:
        return config.broker_id
    if config.broker_id not in (-1, config.node_id):
        raise OttlaError(f"node.id is {config.node_id} and broker.id is {config.broker_id}: give only node.id.")
    return config.node_id
