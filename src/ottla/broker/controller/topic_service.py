"""Topics and stored configuration of the cluster, as the controller changes them (`metadata_changes.py` says how)."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Protocol

from ottla.broker.controller.change_log import Requester
from ottla.broker.controller.deletion_notes import note
from ottla.broker.controller.metadata_changes import Logs, MetadataChanges
from ottla.broker.turns import Pause
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import TopicId, TopicPartition
from ottla.common.random_ids import random_topic_id
from ottla.common.threads import MakeThreads, make_threads
from ottla.controller import topic_plan
from ottla.controller.placement import Placement
from ottla.controller.rule_changes import min_insync_changed
from ottla.controller.rules import Rules
from ottla.controller.topic_plan import NewPartitions, NewTopic
from ottla.metadata import image as images
from ottla.metadata import nodes
from ottla.metadata.image import ClusterImage, ConfigKind, TopicImage
from ottla.metadata.topic_names import collision_key
from ottla.metastore.port import Check, Create, Delete, MetadataStore, Operation, Set
from ottla.storage.log_config import LogConfig

log = logging.getLogger("ottla.topics")


class TopicConfigs(Protocol):
    """What this service needs of the configuration layer."""

    def check_topic(self, configs: Mapping[str, str | None]) -> Mapping[str, str]:
        """The overrides to store; raises ApiError(INVALID_CONFIG)."""

    def log_config(self, overrides: Mapping[str, str]) -> LogConfig: ...


class TopicService(MetadataChanges):
    def __init__(
        self,
        *,
        store: MetadataStore,
        image: ClusterImage,
        epoch: Check | None,
        logs: Logs,
        configs: TopicConfigs,
        placement: Callable[[ClusterImage], Placement],
        internal_topic: Callable[[str], NewTopic],
        rules: Rules,
        node_id: int,
        is_clustered: bool = False,
        make_threads: MakeThreads = make_threads,
        create_elsewhere: Callable[[NewTopic], Awaitable[None]] | None = None,
    ) -> None:
        """`internal_topic`: how one is made, by `offsets.topic.*` and `transaction.state.log.*`. `create_elsewhere`
        asks the controller for a topic; afterwards it is in the image."""
        super().__init__(
            store=store,
            image=image,
            node_id=node_id,
            epoch=epoch,
            logs=logs,
            log_config=configs.log_config,
            is_clustered=is_clustered,
            make_threads=make_threads,
        )
        self._configs = configs
        self._placement = placement
        self._internal_topic = internal_topic
        self._rules = rules
        self._create_elsewhere = create_elsewhere

    # --- topics ---------------------------------------------------------------------------------------------------

    async def create(
        self, topics: Sequence[NewTopic], *, validate_only: bool = False, by: Requester | None = None
    ) -> list[TopicImage | ApiError]:
        """One outcome per topic, in order; a fault of one does not touch the others. All are committed at once."""
        return await self.change(self._create(topics, validate_only), by)

    async def create_one(self, topic: NewTopic, by: Requester | None = None) -> TopicImage:
        outcome = (await self.create([topic], by=by))[0]
        if isinstance(outcome, ApiError):
            raise outcome
        return outcome

    async def ensure_internal(self, name: str) -> TopicImage:
        """The internal topic, created if it is not there."""
        return self._image.topics.get(name) or await self._ensure(self._internal_topic(name))

    async def auto_create(self, name: str, by: Requester | None = None) -> TopicImage:
        """A topic that a client asked about, with the broker's defaults."""
        if name in images.INTERNAL_TOPICS:
            return await self.ensure_internal(name)
        return self._image.topics.get(name) or await self._ensure(NewTopic(name), by)

    async def _ensure(self, topic: NewTopic, by: Requester | None = None) -> TopicImage:
        try:
            if self.epoch is None and self._create_elsewhere is not None:
                await self._create_elsewhere(topic)
                return self._known(topic.name)
            return await self.create_one(topic, by)
        except ApiError as error:
            if error.code is ErrorCode.TOPIC_ALREADY_EXISTS:  # another request was faster
                return self._image.topics[topic.name]
            raise

    async def _create(self, topics: Sequence[NewTopic], validate_only: bool) -> list[TopicImage | ApiError]:
        placement = self._placement(self._image)
        topic_plan.check_total(topic_plan.requested_partitions(topics, placement), self._image)
        taken, pause = topic_plan.taken_names(self._image), Pause()
        outcomes: list[TopicImage | ApiError] = []
        for topic in topics:
            try:
                topic_plan.check_name(topic.name, self._image, taken)
                configs = MappingProxyType(dict(self._configs.check_topic(topic.configs)))
                planned_topic = topic_plan.plan_topic(topic, random_topic_id(), configs, placement)
                if self._is_clustered:
                    min_insync = self._rules.min_insync_replicas(planned_topic)
                    planned_topic = replace(planned_topic, min_insync=min_insync)
                outcomes.append(planned_topic)
                # The next one begins where this one ends: many small topics are spread as one large one is.
                placement = replace(placement, start=placement.start + len(planned_topic.partitions))
                taken[collision_key(topic.name)] = topic.name
            except ApiError as error:
                outcomes.append(error)
            await pause.when_due()
        planned = [outcome for outcome in outcomes if isinstance(outcome, TopicImage)]
        if planned and not validate_only:
            await self.commit([Create(nodes.topic_path(topic.name), nodes.encode_topic(topic)) for topic in planned])
            await self._adopt_or_undo(planned, [Delete(nodes.topic_path(topic.name)) for topic in planned])
        return outcomes

    async def _adopt_or_undo(self, planned: Sequence[TopicImage], undo: Sequence[Operation]) -> None:
        """A disk that refuses leaves no half-made topic."""
        known = self._image.topics
        try:
            await self.adopt(images.with_topics(self._image, planned))
        except Exception as error:
            if not isinstance(error, (ApiError, OSError)):
                log.error("creating logs failed; taking the change back", exc_info=error)
            await self.commit(undo, frees_room=True)
            before = {topic.name: len(known[topic.name].partitions) if topic.name in known else 0 for topic in planned}
            await self.remove_logs(
                TopicPartition(topic.name, index)
                for topic in planned
                for index in range(before[topic.name], len(topic.partitions))
            )
            if isinstance(error, OSError):
                raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"Creating the logs failed: {error}") from error
            raise

    async def delete(self, topics: Iterable[TopicImage], by: Requester | None = None) -> list[TopicImage | ApiError]:
        """What was deleted, or why not, in order. One that was made again meanwhile, under its old name, stays."""
        return await self.change(self._delete([topic.id for topic in topics]), by)

    async def _delete(self, topic_ids: Sequence[TopicId]) -> list[TopicImage | ApiError]:
        unknown = ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        outcomes = [self._image.topics_by_id.get(topic_id, unknown) for topic_id in topic_ids]
        doomed = {outcome.name: outcome for outcome in outcomes if isinstance(outcome, TopicImage)}.values()
        if doomed:
            operations: list[Operation] = []
            for topic in doomed:
                # The note of the deletion outlives a crash, so the logs do not come back as strays.
                operations += [Delete(nodes.topic_path(topic.name)), note(topic)]
            await self.commit(operations, frees_room=True)
            await self.adopt(images.without_topics(self._image, [topic.name for topic in doomed]))
        return outcomes

    async def create_partitions(
        self, requests: Sequence[NewPartitions], *, validate_only: bool = False, by: Requester | None = None
    ) -> list[TopicImage | ApiError]:
        return await self.change(self._create_partitions(requests, validate_only), by)

    async def _create_partitions(
        self, requests: Sequence[NewPartitions], validate_only: bool
    ) -> list[TopicImage | ApiError]:
        topics = self._image.topics
        added = sum(
            max(0, request.total - len(topics[request.topic].partitions))
            for request in requests
            if request.topic in topics
        )
        topic_plan.check_total(added, self._image)
        outcomes: list[TopicImage | ApiError] = []
        placement, pause = self._placement(self._image), Pause()
        for request in requests:
            try:
                outcomes.append(topic_plan.plan_partitions(request, self._known(request.topic), placement))
            except ApiError as error:
                outcomes.append(error)
            await pause.when_due()
        planned = [outcome for outcome in outcomes if isinstance(outcome, TopicImage)]
        if planned and not validate_only:
            await self.commit([Set(nodes.topic_path(topic.name), nodes.encode_topic(topic)) for topic in planned])
            before = [topics[topic.name] for topic in planned]
            undo = [Set(nodes.topic_path(topic.name), nodes.encode_topic(topic)) for topic in before]
            await self._adopt_or_undo(planned, undo)
        return outcomes

    def _known(self, name: str) -> TopicImage:
        topic = self._image.topics.get(name)
        if topic is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return topic

    # --- configuration --------------------------------------------------------------------------------------------

    async def set_topic_configs(self, name: str, configs: Mapping[str, str], by: Requester | None = None) -> None:
        """Replace the topic's own settings; they have been checked already. They are not for one that is made again
        meanwhile, under its old name."""
        topic_id = self._known(name).id

        async def change() -> None:
            known = self._known(name)
            if known.id != topic_id:
                raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            topic = self._following_rules(replace(known, configs=MappingProxyType(dict(configs))))
            # It may lower the retention of a topic that fills the disk.
            await self.commit([Set(nodes.topic_path(name), nodes.encode_topic(topic))], frees_room=True)
            await self.adopt(images.with_topics(self._image, [topic]))

        await self.change(change(), by)

    def _following_rules(self, after: TopicImage) -> TopicImage:
        """Who is eligible to lead depends on min.insync.replicas."""
        if not self._is_clustered:
            return after
        return min_insync_changed(self._image, [after], self._rules).get(after.name, after)

    async def set_configs(
        self, kind: ConfigKind, name: str, configs: Mapping[str, str], by: Requester | None = None
    ) -> None:
        """Replace the settings of one broker (of all with the name ""), group or metrics subscription."""

        async def change() -> None:
            write = _put(nodes.configs_path(kind, name), configs, exists=name in self._image.configs(kind))
            await self.commit(write, frees_room=kind is ConfigKind.BROKER)
            await self.adopt(images.with_configs(self._image, kind, name, configs))

        await self.change(change(), by)

    async def set_features(self, levels: Mapping[str, int], by: Requester | None = None) -> None:
        async def change() -> None:
            new = images.with_features(self._image, levels)
            data = nodes.encode({"levels": dict(new.features), "epoch": new.features_epoch})
            await self.commit([Set(nodes.FEATURES, data)])
            await self.adopt(new)

        await self.change(change(), by)

    async def take_producer_ids(self, count: int) -> int:
        """The first of `count` producer ids that nobody was ever given; they are gone for good even after a crash."""

        async def change() -> int:
            first = self._image.next_producer_id
            await self.commit([Set(nodes.PRODUCER_IDS, nodes.encode({"next": first + count}))])
            await self.adopt(images.with_next_producer_id(self._image, first + count))
            return first

        return await self.change(change(), None)


def _put(path: str, configs: Mapping[str, str], *, exists: bool) -> list[Operation]:
    """An empty mapping is kept as no node at all."""
    if not configs:
        return [Delete(path)] if exists else []
    data = nodes.encode(dict(configs))
    return [Set(path, data) if exists else Create(path, data)]
