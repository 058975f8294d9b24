"""Topics and stored configuration of the cluster: the one place that changes the metadata store and the image.

Theory of operation. A change is planned against the current image, committed to the store in one `multi` (durable
before anything else happens), carried out on the logs, and only then published as a new image; so whoever sees a
topic in the image finds its logs, and an answered CreateTopics survives a power cut. Changes run one after another.
The commit blocks for an fsync, so it runs on a thread of its own, and a change that has begun goes on to its end even
if the client that asked for it hangs up. A crash between the steps is mended at the next start (`topic_startup`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Protocol, TypeVar

from ottla.broker.configs.log_configs import remembering
from ottla.broker.controller import change_log, topic_plan
from ottla.broker.controller.change_log import Requester
from ottla.broker.controller.topic_plan import NewPartitions, NewTopic, Placement
from ottla.broker.turns import Pause
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import TopicId, TopicPartition
from ottla.common.random_ids import random_topic_id
from ottla.common.steps import Pauses
from ottla.metadata import image as images
from ottla.metadata import nodes
from ottla.metadata.image import BrokerImage, ClusterImage, ConfigKind, TopicImage
from ottla.metadata.topic_names import collision_key
from ottla.metastore.port import Check, Create, Delete, MetadataStore, Operation, Set, StoreConflict, StoreUnavailable
from ottla.storage.log_config import LogConfig

log = logging.getLogger("ottla.topics")

# After so long a subscriber that failed is told again what has changed.
_TELL_AGAIN_S = 1.0

T = TypeVar("T")
OnImage = Callable[[ClusterImage, ClusterImage], None]


class Logs(Protocol):
    """What this service needs of the LogManager."""

    def create(self, tp: TopicPartition, topic_id: TopicId, config: LogConfig) -> object: ...

    def delete(self, tp: TopicPartition) -> object: ...

    def get(self, tp: TopicPartition) -> object | None: ...

    def is_any_checkpointed(self, partitions: Iterable[TopicPartition]) -> bool: ...

    def checkpoint_in_steps(self) -> Pauses[list[Future[None]]]: ...

    def store_failed(self, error: Exception, *, is_full: bool) -> None:
        """A change could not be written to the metadata store, which is in the first directory."""


class TopicConfigs(Protocol):
    """What this service needs of the configuration layer."""

    def check_topic(self, configs: Mapping[str, str | None]) -> Mapping[str, str]:
        """The overrides to store; raises ApiError(INVALID_CONFIG)."""

    def log_config(self, overrides: Mapping[str, str]) -> LogConfig: ...


class TopicService:
    def __init__(
        self,
        *,
        store: MetadataStore,
        image: ClusterImage,
        epoch: Check,
        logs: Logs,
        configs: TopicConfigs,
        placement: Placement,
        internal_topic: Callable[[str], NewTopic],
    ) -> None:
        """`internal_topic`: how one is made, by `offsets.topic.*` and `transaction.state.log.*`."""
        self._store = store
        self._image = image
        # That of this controller: no change is made in the name of another one.
        self._epoch = epoch
        self._logs = logs
        self._configs = configs
        self._placement = placement
        self._internal_topic = internal_topic
        self._subscribers: list[_Subscriber] = []
        self._telling_again: asyncio.TimerHandle | None = None
        self._one_at_a_time = asyncio.Lock()
        self._running: set[asyncio.Task[object]] = set()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="metadata")
        # Who asked for the change that is being made.
        self._by: Requester | None = None
        # Images published so far.
        self.changes = 0

    @property
    def image(self) -> ClusterImage:
        return self._image

    def subscribe(self, on_image: OnImage) -> None:
        """`on_image(old, new)` is called on the event loop after each change, in the order of subscription. One that
        raises is told again, with the image that it saw last, until it has caught up: so it must bear being told
        twice."""
        self._subscribers.append(_Subscriber(on_image, self._image))

    def register(self, broker: BrokerImage) -> None:
        """A broker is alive, or is found elsewhere. Call it before anybody can ask for changes."""
        self._image = images.with_broker(self._image, broker)
        self._tell_subscribers()

    async def close(self) -> None:
        """Let changes that have begun come to their end."""
        while self._running:
            await asyncio.wait(self._running)
        if self._telling_again is not None:
            self._telling_again.cancel()
        self._thread.shutdown()

    # --- topics ---------------------------------------------------------------------------------------------------

    async def create(
        self, topics: Sequence[NewTopic], *, validate_only: bool = False, by: Requester | None = None
    ) -> list[TopicImage | ApiError]:
        """One outcome per topic, in order; a fault of one does not touch the others. All are committed at once."""
        return await self._change(self._create(topics, validate_only), by)

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
            return await self.create_one(topic, by)
        except ApiError as error:
            if error.code is ErrorCode.TOPIC_ALREADY_EXISTS:  # another request was faster
                return self._image.topics[topic.name]
            raise

    async def _create(self, topics: Sequence[NewTopic], validate_only: bool) -> list[TopicImage | ApiError]:
        topic_plan.check_total(topic_plan.requested_partitions(topics, self._placement), self._image)
        taken, pause = topic_plan.taken_names(self._image), Pause()
        outcomes: list[TopicImage | ApiError] = []
        for topic in topics:
            try:
                topic_plan.check_name(topic.name, self._image, taken)
                configs = MappingProxyType(dict(self._configs.check_topic(topic.configs)))
                outcomes.append(topic_plan.plan_topic(topic, random_topic_id(), configs, self._placement))
                taken[collision_key(topic.name)] = topic.name
            except ApiError as error:
                outcomes.append(error)
            await pause.when_due()
        planned = [outcome for outcome in outcomes if isinstance(outcome, TopicImage)]
        if planned and not validate_only:
            await self._commit([Create(nodes.topic_path(topic.name), nodes.encode_topic(topic)) for topic in planned])
            undo = [Delete(nodes.topic_path(topic.name)) for topic in planned]
            await self._make_logs_or_undo([(topic, 0) for topic in planned], undo)
            await self._publish(images.with_topics(self._image, planned))
        return outcomes

    async def _make_logs_or_undo(self, planned: Sequence[tuple[TopicImage, int]], undo: Sequence[Operation]) -> None:
        """Pairs of a topic and its first new partition; a disk that refuses leaves no half-made topic."""
        log_config, pause = remembering(self._configs.log_config), Pause()
        try:
            await self._forget_deleted(planned)
            for topic, first in planned:
                config = log_config(topic.configs)
                for index in range(first, len(topic.partitions)):
                    self._logs.create(TopicPartition(topic.name, index), topic.id, config)
                    await pause.when_due()
        except Exception as error:
            if not isinstance(error, (ApiError, OSError)):
                log.error("creating logs failed; taking the change back", exc_info=error)
            await self._commit(undo, frees_room=True)
            await self._remove_logs(planned)
            if isinstance(error, OSError):
                raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"Creating the logs failed: {error}") from error
            raise

    async def _forget_deleted(self, planned: Sequence[tuple[TopicImage, int]]) -> None:
        """Partitions of these names that were deleted a moment ago leave nothing behind in the checkpoints."""
        names = (TopicPartition(topic.name, n) for topic, first in planned for n in range(first, len(topic.partitions)))
        if self._logs.is_any_checkpointed(names):
            pause, steps = Pause(), self._logs.checkpoint_in_steps()
            try:
                while True:
                    next(steps)
                    await pause.when_due()
            except StopIteration as end:
                await asyncio.gather(*map(asyncio.wrap_future, end.value))

    async def _remove_logs(self, topics: Iterable[tuple[TopicImage, int]]) -> bool:
        """Whether all are gone. If one cannot be removed the others go all the same: no later topic may have them."""
        pause, is_done = Pause(), True
        for topic, first in topics:
            for index in range(first, len(topic.partitions)):
                tp = TopicPartition(topic.name, index)
                try:
                    if self._logs.get(tp) is not None:
                        self._logs.delete(tp)
                except (OSError, ApiError) as error:
                    # Nobody sees it any more; the next start removes what is left.
                    log.error("a log could not be removed", exc_info=error, extra={"partition": str(tp)})
                    is_done = False
                await pause.when_due()
        return is_done

    async def delete(self, topics: Iterable[TopicImage], by: Requester | None = None) -> list[TopicImage | ApiError]:
        """What was deleted, or why not, in order. One that was made again meanwhile, under its old name, stays."""
        return await self._change(self._delete([topic.id for topic in topics]), by)

    async def _delete(self, topic_ids: Sequence[TopicId]) -> list[TopicImage | ApiError]:
        unknown = ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        outcomes = [self._image.topics_by_id.get(topic_id, unknown) for topic_id in topic_ids]
        doomed = {outcome.name: outcome for outcome in outcomes if isinstance(outcome, TopicImage)}.values()
        if doomed:
            operations: list[Operation] = []
            for topic in doomed:
                # The note of the deletion outlives a crash, so the logs do not come back as strays.
                note = nodes.encode({"name": topic.name, "partitions": len(topic.partitions)})
                operations += [Delete(nodes.topic_path(topic.name)), Create(nodes.deletion_path(topic.id), note)]
            await self._commit(operations, frees_room=True)
            await self._publish(images.without_topics(self._image, [topic.name for topic in doomed]))
            if await self._remove_logs([(topic, 0) for topic in doomed]):
                try:
                    await self._commit([Delete(nodes.deletion_path(topic.id)) for topic in doomed], frees_room=True)
                except ApiError as error:  # the topics are gone for everybody
                    log.error("the note of a deletion is left for the next start", exc_info=error)
        return outcomes

    async def create_partitions(
        self, requests: Sequence[NewPartitions], *, validate_only: bool = False, by: Requester | None = None
    ) -> list[TopicImage | ApiError]:
        return await self._change(self._create_partitions(requests, validate_only), by)

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
        pause = Pause()
        for request in requests:
            try:
                outcomes.append(topic_plan.plan_partitions(request, self._known(request.topic), self._placement))
            except ApiError as error:
                outcomes.append(error)
            await pause.when_due()
        planned = [outcome for outcome in outcomes if isinstance(outcome, TopicImage)]
        if planned and not validate_only:
            await self._commit([Set(nodes.topic_path(topic.name), nodes.encode_topic(topic)) for topic in planned])
            before = [topics[topic.name] for topic in planned]
            undo = [Set(nodes.topic_path(topic.name), nodes.encode_topic(topic)) for topic in before]
            firsts = [(topic, len(topics[topic.name].partitions)) for topic in planned]
            await self._make_logs_or_undo(firsts, undo)
            await self._publish(images.with_topics(self._image, planned))
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
            topic = replace(known, configs=MappingProxyType(dict(configs)))
            # It may lower the retention of a topic that fills the disk.
            await self._commit([Set(nodes.topic_path(name), nodes.encode_topic(topic))], frees_room=True)
            await self._publish(images.with_topics(self._image, [topic]))

        await self._change(change(), by)

    async def set_configs(
        self, kind: ConfigKind, name: str, configs: Mapping[str, str], by: Requester | None = None
    ) -> None:
        """Replace the settings of one broker (of all with the name ""), group or metrics subscription."""

        async def change() -> None:
            write = _put(nodes.configs_path(kind, name), configs, exists=name in self._image.configs(kind))
            await self._commit(write, frees_room=kind is ConfigKind.BROKER)
            await self._publish(images.with_configs(self._image, kind, name, configs))

        await self._change(change(), by)

    async def set_features(self, levels: Mapping[str, int], by: Requester | None = None) -> None:
        async def change() -> None:
            new = images.with_features(self._image, levels)
            data = nodes.encode({"levels": dict(new.features), "epoch": new.features_epoch})
            await self._commit([Set(nodes.FEATURES, data)])
            await self._publish(new)

        await self._change(change(), by)

    async def take_producer_ids(self, count: int) -> int:
        """The first of `count` producer ids that nobody was ever given; they are gone for good even after a crash."""

        async def change() -> int:
            first = self._image.next_producer_id
            await self._commit([Set(nodes.PRODUCER_IDS, nodes.encode({"next": first + count}))])
            await self._publish(images.with_next_producer_id(self._image, first + count))
            return first

        return await self._change(change(), None)

    # --- how a change runs ----------------------------------------------------------------------------------------

    async def _change(self, change: Coroutine[object, object, T], by: Requester | None) -> T:
        async def alone() -> T:
            async with self._one_at_a_time:
                self._by = by
                return await change

        task = asyncio.get_running_loop().create_task(alone())
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return await asyncio.shield(task)

    async def _commit(self, operations: Iterable[Operation], *, frees_room: bool = False) -> None:
        """One that frees room must be possible on a full disk."""
        loop = asyncio.get_running_loop()
        change = partial(self._store.multi, [self._epoch, *operations], urgent=frees_room)
        try:
            await loop.run_in_executor(self._thread, change)
        except StoreConflict as conflict:
            if conflict.operation is not self._epoch:
                raise
            raise ApiError(ErrorCode.NOT_CONTROLLER, "another broker is the controller now") from conflict
        except StoreUnavailable as error:
            self._logs.store_failed(error, is_full=error.is_full)
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error

    async def _publish(self, new: ClusterImage) -> None:
        old, self._image = self._image, new
        self.changes += 1
        self._tell_subscribers()
        if change_log.is_heard():
            pause = Pause()
            for what, facts in change_log.changes(old, new):
                change_log.tell(what, self._by, **facts)
                await pause.when_due()

    def _tell_subscribers(self) -> None:
        """One after the other: those who come later stand on those before, so who fails keeps the rest from going on
        with a change that is only half made."""
        for subscriber in self._subscribers:
            if subscriber.seen is self._image:
                continue
            try:
                subscriber.on_image(subscriber.seen, self._image)
                subscriber.seen = self._image
            except Exception:
                log.exception("a part of the broker failed on a change of the metadata, it will be told again")
                if self._telling_again is None:
                    self._telling_again = asyncio.get_running_loop().call_later(_TELL_AGAIN_S, self._tell_again)
                return

    def _tell_again(self) -> None:
        self._telling_again = None
        self._tell_subscribers()


class _Subscriber:
    """`seen` is the last image that it has taken up."""

    def __init__(self, on_image: OnImage, seen: ClusterImage) -> None:
        self.on_image = on_image
        self.seen = seen


def _put(path: str, configs: Mapping[str, str], *, exists: bool) -> list[Operation]:
    """An empty mapping is kept as no node at all."""
    if not configs:
        return [Delete(path)] if exists else []
    data = nodes.encode(dict(configs))
    return [Set(path, data) if exists else Create(path, data)]
