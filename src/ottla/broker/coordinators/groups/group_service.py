"""The group coordinator of this broker: a shard for each `__consumer_offsets` partition, and what they follow.

A group lives in the partition that Kafka puts it in (Java's hash of its id). The machines in `ottla.groups` decide
everything, and `coordinator_shard.py` carries it out; here is what they hear of the rest of the broker.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from ottla.broker.context import RequestContext
from ottla.broker.coordinators.groups.group_shard import GroupShard
from ottla.broker.coordinators.internal_topics import OFFSETS_TOPIC
from ottla.broker.coordinators.runtime import CoordinatorRuntime
from ottla.broker.partitions.partition import Partition
from ottla.common.steps import Pauses
from ottla.groups.config import ConsumerSettings, GroupConfig, MigrationPolicy
from ottla.groups.records import serialize
from ottla.groups.state import Client, GroupState
from ottla.metadata.acls import Operation
from ottla.metadata.image import ClusterImage

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

log = logging.getLogger("ottla.groups")

_RETRY_MS = 1_000


def group_config(config: Any) -> GroupConfig:
    """The broker's properties as the machines want them."""
    return GroupConfig(
        session_timeout_ms_min=config.group_min_session_timeout_ms,
        session_timeout_ms_max=config.group_max_session_timeout_ms,
        initial_rebalance_delay_ms=config.group_initial_rebalance_delay_ms,
        members_max=config.group_max_size,
        consumer=ConsumerSettings(
            config.group_consumer_session_timeout_ms,
            config.group_consumer_heartbeat_interval_ms,
            config.group_consumer_assignment_interval_ms,
        ),
        consumer_members_max=config.group_consumer_max_size,
        consumer_assignors=tuple(config.group_consumer_assignors),
        consumer_regex_refresh_interval_ms=config.group_consumer_regex_refresh_interval_ms,
        migration_policy=MigrationPolicy(config.group_consumer_migration_policy.lower()),
        offset_metadata_bytes_max=config.offset_metadata_max_bytes,
        offsets_retention_ms=config.offsets_retention_minutes * 60_000,
    )


class GroupService:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._config = group_config(broker.config)
        self.runtime = CoordinatorRuntime(broker, OFFSETS_TOPIC, log, self._make_shard)
        self.shard = self.runtime.shard
        self._catching_up: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Call when partitions are there and follow the image."""
        broker = self._broker
        broker.topics.subscribe(self._on_image)
        broker.config.on_change(self._on_config)
        broker.timers.every(
            lambda: broker.config.offsets_retention_check_interval_ms, self.expire_offsets, "expire offsets"
        )
        self.runtime.follow(broker.image)

    def stop(self) -> None:
        """Release those who wait, so that their connections can be closed. Others are sent away from now on."""
        self.runtime.stop()
        for task in self._catching_up:
            task.cancel()

    def end_transaction(self, index: int, producer_id: int, *, committed: bool) -> None:
        """The marker of a transaction is in this partition of the offsets topic."""
        shard = self.runtime.get(index)
        if shard is not None and not shard.is_loading:  # else it will be read
            shard.replay_marker(producer_id, committed=committed)

    # --- answering

    def client(self, context: RequestContext) -> Client:
        access, may_describe = self._broker.access, None
        if access is not None:
            may_describe = partial(access.of(context).may_topic, Operation.DESCRIBE, tells=False)
        return Client(context.version, context.client_id or "", f"/{context.client_host}", may_describe)

    # --- time

    async def expire_offsets(self) -> None:
        await self._broker.turns.queue(self._expire_offsets())

    def _expire_offsets(self) -> Pauses[None]:
        now_ms = self.runtime.now_ms()
        for shard in self.runtime.loaded():
            for group_id in list(shard.state.groups):
                shard.expire(group_id, now_ms)
                yield None

    # --- what changes around us

    def _on_config(self, changed: frozenset[str]) -> None:
        if any(name.startswith(("group.", "offset")) for name in changed):
            self._config = group_config(self._broker.config)
            for shard in self.runtime.all():
                shard.state.config = self._config

    def _own_settings(self, group_id: str) -> ConsumerSettings | None:
        if group_id not in self._broker.image.group_configs:
            return None
        own = self._broker.configs.group_config(group_id)
        return ConsumerSettings(
            own.consumer_session_timeout_ms, own.consumer_heartbeat_interval_ms, own.consumer_assignment_interval_ms
        )

    def _on_image(self, old: ClusterImage, new: ClusterImage) -> None:
        if old.topics is new.topics:
            return
        gone = [name for name, topic in old.topics.items() if name not in new.topics or new.topics[name].id != topic.id]
        has_new = any(name not in old.topics or old.topics[name].id != topic.id for name, topic in new.topics.items())
        self.runtime.follow(new)
        for shard in self.runtime.all():
            if shard.state.image is not new:  # else we are told a second time, and what it knows now is of later
                shard.state.on_image(new, has_new_topics=has_new)
                shard.forget_topics(gone)

    def _make_shard(self, partition: Partition) -> GroupShard:
        broker = self._broker
        state = GroupState(self._config, lambda: str(uuid.uuid4()), broker.image)
        state.own_settings = self._own_settings
        return GroupShard(
            state,
            self.runtime.log_of(partition, serialize, lambda: broker.config.offsets_topic_compression_codec),
            broker.clock,
            call_later=broker.call_later,
            # Folders are taken in one by one: topics of the groups may still be to come.
            knows_all_topics=not broker.config.ottla_adopt_logs,
            catch_up=self._catch_up if broker.is_clustered else None,
        )

    def _catch_up(self, then: Callable[[], None]) -> None:
        async def catch_up() -> None:
            while True:
                try:
                    await self._broker.catch_up()
                except Exception as error:
                    log.warning("cannot tell which topics were deleted, will try again", extra={"why": str(error)})
                    await self._broker.timers.sleep(_RETRY_MS)
                else:
                    then()
                    return

        task = self._broker.loop.create_task(catch_up())
        self._catching_up.add(task)
        task.add_done_callback(self._catching_up.discard)
