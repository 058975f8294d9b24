"""Configuration while the broker runs: what it is, who may change it, and who hears of a change.

The stored settings are in the cluster image; this service turns them into effective ones. A change is checked against
the image, stored through the TopicService, and takes effect when the new image is published (`on_image`): the broker's
live configuration is reconfigured, and logs get their new settings. Changes run one after another, so that two clients
that each add an item to a list do not lose one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum

from ottla.broker.configs import loggers
from ottla.broker.configs.config_changes import Change, Operation, apply_changes, replace_all
from ottla.broker.configs.config_entries import Entry
from ottla.broker.configs.config_resources import (
    Brokers,
    ClientMetrics,
    Groups,
    ResourceKind,
    Topics,
    check_broker_id,
    check_topic_overrides,
    describe_loggers,
)
from ottla.broker.controller.change_log import Requester, tell
from ottla.broker.controller.topic_service import TopicService
from ottla.broker.log_configs import topic_log_config
from ottla.broker.turns import in_turns
from ottla.common.config import BrokerConfig, GroupConfig
from ottla.common.config.names import general_of
from ottla.common.errors import ApiError, ErrorCode, OttlaError
from ottla.metadata.image import ClusterImage
from ottla.storage.log_config import LogConfig

log = logging.getLogger("ottla.config")

# Of topics with settings of their own there may be thousands, and a topic may have had many.
_LOG_CONFIGS_MAX = 1_000


class ResourceType(IntEnum):
    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigService:
    """Make it first, `load` it with the image the broker starts from, then `attach` the TopicService."""

    def __init__(self, config: BrokerConfig) -> None:
        self._config = config
        # By overrides, until the broker's own settings change: most topics have the same ones (none), each change of a
        # topic asks again, and 0.2 ms for each adds up.
        self._log_configs: dict[frozenset[tuple[str, str]], LogConfig] = {}
        config.on_change(lambda _: self._log_configs.clear())
        self._kinds: dict[int, ResourceKind] = {}
        self._one_at_a_time = asyncio.Lock()
        self._topics: TopicService | None = None

    def load(self, image: ClusterImage) -> None:
        """Apply the stored dynamic settings; one that is not valid any more is left out, with an error in the log."""
        cluster = self._still_valid(image.broker_configs.get("", {}))
        broker = self._still_valid(image.broker_configs.get(str(self._config.node_id), {}))
        try:
            self._config.reconfigure(cluster, broker)
        except OttlaError as error:
            log.error("stored dynamic settings are not used", extra={"why": str(error)})

    def _still_valid(self, stored: Mapping[str, str]) -> dict[str, str]:
        valid: dict[str, str] = {}
        for name, text in stored.items():
            known = self._config.known()
            setting = known.get(general_of(name, known) or name)
            try:
                if setting is None:
                    raise OttlaError("the name is unknown")
                setting.parse(text)
                valid[name] = text
            except OttlaError as error:
                log.error("a stored dynamic setting is not used", extra={"property": name, "why": str(error)})
        return valid

    def attach(self, topics: TopicService) -> None:
        self._topics = topics
        self._kinds = {
            ResourceType.TOPIC: Topics(self._config, topics),
            ResourceType.BROKER: Brokers(self._config, topics),
            ResourceType.CLIENT_METRICS: ClientMetrics(self._config, topics),
            ResourceType.GROUP: Groups(self._config, topics),
        }
        topics.subscribe(self.on_image)

    def on_image(self, old: ClusterImage, new: ClusterImage) -> None:
        if old.broker_configs != new.broker_configs:
            self.load(new)

    # --- what others ask

    def log_config(self, overrides: Mapping[str, str]) -> LogConfig:
        """The settings of a log; a stored override that is valid no longer is left out rather than losing the log."""
        key = frozenset(overrides.items())
        found = self._log_configs.get(key)
        if found is None:
            if len(self._log_configs) >= _LOG_CONFIGS_MAX:
                self._log_configs.clear()
            found = self._log_configs[key] = self._make_log_config(overrides)
        return found

    def _make_log_config(self, overrides: Mapping[str, str]) -> LogConfig:
        try:
            return topic_log_config(self._config, overrides)
        except OttlaError as error:
            log.error("a stored topic setting is not used", extra={"why": str(error)})
            return topic_log_config(self._config, _without_faults(self._config, overrides))

    def check_topic(self, configs: Mapping[str, str | None]) -> Mapping[str, str]:
        """The overrides to store for a new topic; ApiError(INVALID_CONFIG)."""
        nulls = sorted(name for name, text in configs.items() if text is None)
        if nulls:
            raise ApiError(ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {', '.join(nulls)}")
        given = {name: text for name, text in configs.items() if text is not None}
        check_topic_overrides(self._config, given)
        return given

    def group_config(self, group: str) -> GroupConfig:
        """The effective settings of a group, within the broker's bounds."""
        own = self._topics.image.group_configs.get(group, {}) if self._topics is not None else {}
        try:
            return GroupConfig(self._config, own)
        except OttlaError as error:
            log.error("stored group settings are not used", extra={"group": group, "why": str(error)})
            return GroupConfig(self._config, {})

    # --- what clients ask

    def describe(self, kind: int, name: str) -> Iterator[Entry]:
        if kind == ResourceType.BROKER_LOGGER:
            check_broker_id(name, self._config.node_id)
            return describe_loggers()
        resource = self._resource(kind)
        resource.check_name(name)
        return resource.describe(name)

    def describe_new_topic(self, overrides: Mapping[str, str]) -> Iterator[Entry]:
        """What a topic with these overrides has, also one that is only thought of; in order of names."""
        if self._topics is None:
            return iter(())
        entries = Topics(self._config, self._topics).describe_with(overrides)
        return iter(sorted(entries, key=lambda entry: entry.name))

    def resource_names(self, kind: int) -> Sequence[str]:
        if kind == ResourceType.BROKER_LOGGER:
            kind = ResourceType.BROKER
        return self._resource(kind).names()

    async def replace(
        self,
        kind: int,
        name: str,
        configs: Sequence[tuple[str, str | None]],
        *,
        validate_only: bool,
        by: Requester | None = None,
    ) -> None:
        """AlterConfigs: the resource has these settings and no others."""
        resource = self._alterable(kind, name)
        async with self._one_at_a_time:
            await self._store(resource, name, replace_all(configs), validate_only, by)

    async def change(
        self, kind: int, name: str, changes: Sequence[Change], *, validate_only: bool, by: Requester | None = None
    ) -> None:
        """IncrementalAlterConfigs."""
        if kind == ResourceType.BROKER_LOGGER:
            self._change_loggers(name, changes, validate_only, by)
            return
        resource = self._alterable(kind, name)
        async with self._one_at_a_time:
            resource.check_name(name)
            configs = await in_turns(
                apply_changes(resource.own(name), changes, resource.setting, lambda key: resource.effective(name, key))
            )
            await self._store(resource, name, configs, validate_only, by)

    def _resource(self, kind: int) -> ResourceKind:
        if kind not in self._kinds:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {kind}")
        return self._kinds[kind]

    def _alterable(self, kind: int, name: str) -> ResourceKind:
        resource = self._resource(kind)
        if kind == ResourceType.TOPIC and not name:
            raise ApiError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
        resource.check_name(name)
        return resource

    @staticmethod
    async def _store(
        resource: ResourceKind, name: str, configs: Mapping[str, str], validate_only: bool, by: Requester | None
    ) -> None:
        resource.check(name, configs)
        if not validate_only and configs != resource.own(name):
            await resource.store(name, configs, by)

    def _change_loggers(self, name: str, changes: Sequence[Change], validate_only: bool, by: Requester | None) -> None:
        """All or nothing: levels are set only when every change has been checked."""
        check_broker_id(name, self._config.node_id)
        for change in changes:
            _check_logger_change(change)
        if validate_only:
            return
        for logger, operation, value in changes:
            if operation == Operation.DELETE:
                loggers.reset_level(logger)
            else:
                loggers.set_level(logger, value or "")
            tell("log level changed", by, logger=logger, level=loggers.level_of(logger))


def _check_logger_change(change: Change) -> None:
    name, operation, value = change
    if operation not in (Operation.SET, Operation.DELETE):
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Only SET and DELETE are allowed for the logger {name}.")
    if name not in set(loggers.logger_names()):
        raise ApiError(ErrorCode.INVALID_CONFIG, f"Logger {name} does not exist!")
    if operation == Operation.DELETE and name == loggers.ROOT:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Removing the log level of the root logger is not allowed")
    if operation == Operation.SET and not loggers.is_level(value or ""):
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            f"Cannot set the log level of {name} to {value}: expected one of {', '.join(loggers.LEVEL_NAMES)}.",
        )


def _without_faults(config: BrokerConfig, overrides: Mapping[str, str]) -> dict[str, str]:
    valid: dict[str, str] = {}
    for name, text in overrides.items():
        try:
            topic_log_config(config, {name: text})
            valid[name] = text
        except OttlaError:
            continue
    return valid
