"""The kinds of resources that have configuration: topics, brokers, loggers, client metrics subscriptions, groups.

Each knows which names it has, how to check what a client wants, how to describe itself, and where its settings are
kept. The codes and rules are those of Kafka 4.3; the words are ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from ottla.broker.configs import loggers
from ottla.broker.configs.config_entries import Entry, broker_entry, entry
from ottla.broker.controller.change_log import Requester
from ottla.common.config import (
    BrokerConfig,
    ClientMetricsConfig,
    GroupConfig,
    LayeredConfig,
    Scope,
    Setting,
    Source,
    SourcedText,
    TopicConfig,
    check_group_overrides,
)
from ottla.common.config.names import general_of, unknown
from ottla.common.errors import ApiError, ErrorCode, OttlaError
from ottla.metadata.image import ConfigKind
from ottla.metadata.topic_names import name_fault

if TYPE_CHECKING:
    from ottla.broker.controller.topic_service import TopicService

# Kafka lets these change only for one listener, under its prefix; ours serve PLAINTEXT alone.
_PER_LISTENER = ("ssl.", "sasl.", "principal.builder.")


class ResourceKind(Protocol):
    """A kind whose settings are stored; `name` has been through `check_name`."""

    def names(self) -> Sequence[str]:
        """Those that exist or have settings, for ListConfigResources."""

    def check_name(self, name: str) -> None: ...

    def own(self, name: str) -> Mapping[str, str]:
        """What is set on the resource itself."""

    def setting(self, key: str) -> Setting[Any] | None: ...

    def effective(self, name: str, key: str) -> str | None: ...

    def check(self, name: str, configs: Mapping[str, str]) -> None:
        """Whether `configs` may become the resource's own settings; ApiError if not."""

    def describe(self, name: str) -> Iterator[Entry]: ...

    async def store(self, name: str, configs: Mapping[str, str], by: Requester | None) -> None: ...


class _Stored:
    """Settings by name, in a mapping of the image."""

    kind: ConfigKind

    def __init__(self, config: BrokerConfig, topics: TopicService) -> None:
        self._config = config
        self._topics = topics

    def names(self) -> Sequence[str]:
        return list(self._topics.image.configs(self.kind))

    def own(self, name: str) -> Mapping[str, str]:
        return self._topics.image.configs(self.kind).get(name, {})

    async def store(self, name: str, configs: Mapping[str, str], by: Requester | None) -> None:
        await self._topics.set_configs(self.kind, name, configs, by)


class _Layered(_Stored):
    """What topics, groups and metrics subscriptions have in common."""

    config_class: type[LayeredConfig]

    def setting(self, key: str) -> Setting[Any] | None:
        return self.config_class.definitions().get(key)

    def effective(self, name: str, key: str) -> str | None:
        setting = self.setting(key)
        return None if setting is None else setting.text(self._effective(name).value(key))

    def _effective(self, name: str) -> LayeredConfig:
        return self.config_class(self._config, self.own(name))

    def describe(self, name: str) -> Iterator[Entry]:
        return self.describe_with(self.own(name))

    def describe_with(self, own: Mapping[str, str]) -> Iterator[Entry]:
        """A resource that has these settings of its own, whether it exists or not."""
        effective = self.config_class(self._config, own)
        for key, setting in self.config_class.definitions().items():
            if setting.internal and key not in own:
                continue
            supplied = tuple(self.config_class.explain(key, self._config, own))
            yield entry(setting, setting.text(effective.value(key)), supplied)


class Topics(_Layered):
    config_class = TopicConfig

    def names(self) -> Sequence[str]:
        return list(self._topics.image.topics)

    def check_name(self, name: str) -> None:
        fault = name_fault(name)
        if fault is not None:
            raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
        if name not in self._topics.image.topics:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")

    def own(self, name: str) -> Mapping[str, str]:
        return self._topics.image.topics[name].configs

    def check(self, name: str, configs: Mapping[str, str]) -> None:
        check_topic_overrides(self._config, configs)

    async def store(self, name: str, configs: Mapping[str, str], by: Requester | None) -> None:
        await self._topics.set_topic_configs(name, configs, by)


def check_topic_overrides(config: BrokerConfig, overrides: Mapping[str, str]) -> None:
    """ApiError(INVALID_CONFIG) if a topic cannot have these settings."""
    try:
        TopicConfig(config, overrides).check_together()
    except OttlaError as error:
        raise ApiError(ErrorCode.INVALID_CONFIG, str(error)) from None


class Groups(_Layered):
    kind = ConfigKind.GROUP
    config_class = GroupConfig

    def check_name(self, name: str) -> None:
        if not name:
            raise ApiError(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")

    def check(self, name: str, configs: Mapping[str, str]) -> None:
        try:
            check_group_overrides(self._config, configs)
        except OttlaError as error:
            raise ApiError(ErrorCode.INVALID_CONFIG, str(error)) from None


class ClientMetrics(_Layered):
    kind = ConfigKind.CLIENT_METRICS
    config_class = ClientMetricsConfig

    def check_name(self, name: str) -> None:
        if not name:
            raise ApiError(ErrorCode.INVALID_REQUEST, "Client metrics subscription name must not be empty")

    def check(self, name: str, configs: Mapping[str, str]) -> None:
        for key in configs:
            if key not in ClientMetricsConfig.definitions():
                error = unknown("client metrics configuration", key, ClientMetricsConfig.definitions())
                raise ApiError(ErrorCode.INVALID_REQUEST, str(error))
        try:
            ClientMetricsConfig(self._config, configs)
        except OttlaError as error:
            raise ApiError(ErrorCode.INVALID_CONFIG, str(error)) from None


class Brokers(_Stored):
    """Dynamic settings of this broker under its id, of all brokers under the empty name."""

    kind = ConfigKind.BROKER

    def names(self) -> Sequence[str]:
        return [str(self._config.node_id)]

    def check_name(self, name: str) -> None:
        """Settings of the others may be changed here, by their controller."""
        others = self._topics.image.registrations
        if name and not (name.isdecimal() and int(name) in others):
            check_broker_id(name, self._config.node_id)

    def setting(self, key: str) -> Setting[Any] | None:
        known = self._config.known()
        return known.get(general_of(key, known) or key)

    def effective(self, name: str, key: str) -> str | None:
        setting = self.setting(key)
        if setting is None:
            return None
        own = next(self._config.explain_listener(key), None)
        return own.text if own is not None else setting.text(self._config.value(setting.name))

    def check(self, name: str, configs: Mapping[str, str]) -> None:
        new = {key: text for key, text in configs.items() if self.own(name).get(key) != text}
        self._check_may_change(name, new)
        layers = {"": self.own(""), str(self._config.node_id): self.own(str(self._config.node_id)), name: configs}
        try:
            wanted = self._config.reconfigured(layers[""], layers[str(self._config.node_id)])
            if name in ("", str(self._config.node_id)):
                self._config.try_out(wanted)  # files of another broker are not here
        except OttlaError as error:
            raise ApiError(ErrorCode.INVALID_REQUEST, str(error)) from None

    def _check_may_change(self, name: str, keys: Mapping[str, str]) -> None:
        known = self._config.known()
        settings = {key: setting for key in keys if (setting := self.setting(key)) is not None}
        for key in keys:
            if key not in settings:
                raise ApiError(ErrorCode.INVALID_REQUEST, str(unknown("configuration property", key, known)))
        rules: tuple[tuple[str, Callable[[Setting[Any]], bool]], ...] = (
            ("Cannot update these configs dynamically", lambda setting: setting.scope is Scope.READ_ONLY),
            (
                "Cannot update these configs at default cluster level, broker id must be specified",
                lambda setting: not name and setting.scope is Scope.PER_BROKER,
            ),
        )
        for why, applies in rules:
            wrong = sorted(key for key, setting in settings.items() if applies(setting))
            if wrong:
                raise ApiError(ErrorCode.INVALID_REQUEST, f"{why}: {', '.join(wrong)}")
        # As in Kafka: which listener is meant has to be said.
        wrong = sorted(key for key in settings if key.startswith(_PER_LISTENER))
        if wrong:
            why = "These security configs can be dynamically updated only per-listener using the listener prefix"
            raise ApiError(ErrorCode.INVALID_REQUEST, f"{why}: {', '.join(wrong)}")

    def describe(self, name: str) -> Iterator[Entry]:
        if not name:
            return self._describe_default()
        check_broker_id(name, self._config.node_id)  # what another one has in its own file only it knows
        return self._describe_broker()

    def _describe_broker(self) -> Iterator[Entry]:
        for key, setting in self._config.known().items():
            described = broker_entry(setting, setting.text(self._config.value(key)), tuple(self._supplied(setting)))
            if not setting.internal or described.source is not Source.DEFAULT_CONFIG:
                yield described
        for key in self._config.names_of_listeners:
            general = self.setting(key)
            if general is not None:
                supplied = tuple(self._config.explain_listener(key))
                yield replace(broker_entry(general, supplied[0].text, supplied), name=key)

    def _supplied(self, setting: Setting[Any]) -> Iterator[SourcedText]:
        """Other names follow only if the property has a value itself: without one they do not supply it."""
        own = tuple(self._config.explain(setting.name))
        if own:
            others = [value for synonym in setting.synonyms for value in self._config.explain(synonym.name)]
            yield from sorted((*own, *others), key=lambda value: value.source)

    def _describe_default(self) -> Iterator[Entry]:
        """Of the cluster-wide default only what is set."""
        for key, text in self.own("").items():
            setting = self._config.known().get(key)
            if setting is not None:
                supplied = (SourcedText(key, text, Source.DYNAMIC_DEFAULT_BROKER_CONFIG),)
                yield broker_entry(setting, text, supplied)


def check_broker_id(name: str, node_id: int) -> None:
    if not name.isdecimal():
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}")
    if int(name) != node_id:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Unexpected broker id, expected {node_id}, but received {name}")


def describe_loggers() -> Iterator[Entry]:
    for name in loggers.logger_names():
        yield Entry(name, loggers.level_of(name), Source.DYNAMIC_BROKER_LOGGER_CONFIG)
