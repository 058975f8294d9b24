"""The cluster image of this broker, and how it changes: the one place that writes the metadata store.

Theory of operation. A change of the controller is planned against the current image, committed to the store in one
`multi` (durable before anything else happens), and then adopted: the logs of new replicas here are made, the new image
is published, and logs that are of no use any more go. So whoever sees a topic in the image finds its logs, and an
answered CreateTopics survives a power cut. In a cluster the other brokers are told by the store that nodes have
changed; they read them again and adopt what they find in the same way.

Changes run one after another. A commit blocks for an fsync or a round through ZooKeeper, so it runs on a thread of its
own, and a change that has begun goes on to its end even if the client that asked for it hangs up. A crash between the
steps is mended at the next start (`topic_startup`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Protocol, TypeVar

from ottla.broker.controller import change_log
from ottla.broker.controller.change_log import Requester
from ottla.broker.controller.damaged_nodes import DamagedNodes
from ottla.broker.controller.deletion_notes import confirm_deletions
from ottla.broker.turns import Pause, in_turns
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import TopicId, TopicPartition
from ottla.common.steps import Pauses
from ottla.common.threads import MakeThreads, make_threads
from ottla.metadata import image as images
from ottla.metadata import nodes
from ottla.metadata.image import BrokerImage, ClusterImage, TopicImage
from ottla.metastore import stored_image
from ottla.metastore.port import (
    Check,
    Create,
    MetadataStore,
    Operation,
    Set,
    StoreConflict,
    StoreUnavailable,
    in_multis,
)
from ottla.storage.log_config import LogConfig

log = logging.getLogger("ottla.topics")

# After so long a subscriber that failed is told again what has changed.
_TELL_AGAIN_S = 1.0

T = TypeVar("T")
# An answer, and the topics that change, by name.
Plan = tuple[T, Mapping[str, TopicImage]]
OnImage = Callable[[ClusterImage, ClusterImage], None]


class Checkpoints(Protocol):
    def names_any_deleted(self, partitions: Iterable[TopicPartition]) -> bool: ...

    def in_steps(self) -> Pauses[list[Future[None]]]: ...


class Logs(Protocol):
    """What is needed here of the LogManager."""

    @property
    def unmade(self) -> Mapping[TopicPartition, TopicId]: ...

    def create(self, tp: TopicPartition, topic_id: TopicId, config: LogConfig) -> object: ...

    def delete(self, tp: TopicPartition) -> object: ...

    def get(self, tp: TopicPartition) -> object | None: ...

    @property
    def checkpointing(self) -> Checkpoints: ...

    def store_failed(self, error: Exception, *, is_full: bool) -> None:
        """A change could not be written to the metadata store, which is in the first directory."""


class MetadataChanges:
    def __init__(
        self,
        *,
        store: MetadataStore,
        image: ClusterImage,
        node_id: int,
        epoch: Check | None,
        logs: Logs,
        log_config: Callable[[Mapping[str, str]], LogConfig],
        is_clustered: bool = False,
        make_threads: MakeThreads = make_threads,
    ) -> None:
        """`epoch`: what every change begins with, so that none is made in the name of another controller; None while
        this broker is not the controller."""
        self._store = store
        self._image = image
        self._node_id = node_id
        self.epoch = epoch
        self._logs = logs
        self._log_config = log_config
        self._is_clustered = is_clustered
        # Called when it turns out that another broker is the controller.
        self.on_deposed: Callable[[], None] = lambda: None
        self._subscribers: list[_Subscriber] = []
        self._telling_again: asyncio.TimerHandle | None = None
        self._one_at_a_time = asyncio.Lock()
        self._running: set[asyncio.Task[object]] = set()
        self._thread = make_threads(1, "metadata")
        # Who asked for the change that is being made.
        self._by: Requester | None = None
        # A change may be in the store and not in the image: nothing is planned before the store was read again.
        self._is_in_doubt = False
        self.damaged = DamagedNodes()
        # Images published so far.
        self.changes = 0

    @property
    def image(self) -> ClusterImage:
        return self._image

    def subscribe(self, on_image: OnImage, *, first: bool = False) -> None:
        """`on_image(old, new)` is called on the event loop after each change, in the order of subscription; those that
        stand on no other are told `first`. One that raises is told again, with the image that it saw last, until it has
        caught up: so it must bear being told twice."""
        self._subscribers.insert(0 if first else len(self._subscribers), _Subscriber(on_image, self._image))

    def register(self, broker: BrokerImage) -> None:
        """On a single node: it is alive, or is found elsewhere. Call it before anybody can ask for changes."""
        self._image = images.with_broker(self._image, broker)
        self._tell_subscribers()

    async def close(self) -> None:
        """Let changes that have begun come to their end."""
        while self._running:
            await asyncio.wait(self._running)
        if self._telling_again is not None:
            self._telling_again.cancel()
        self._thread.shutdown()

    # --- how a change runs ----------------------------------------------------------------------------------------

    async def change(self, change: Coroutine[object, object, T], by: Requester | None = None) -> T:
        async def alone() -> T:
            async with self._one_at_a_time:
                self._by = by
                try:
                    if self._is_in_doubt:
                        await self._read_again(None)
                        self._is_in_doubt = False
                    return await change
                finally:
                    change.close()

        task = asyncio.get_running_loop().create_task(alone())
        self._running.add(task)
        task.add_done_callback(self._ended)
        return await asyncio.shield(task)

    def _ended(self, task: asyncio.Task[object]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            task.exception()  # whoever asked may have gone, and then nobody else looks at it

    def in_store(self, work: Callable[[MetadataStore], T]) -> Awaitable[T]:
        """Ask the store, after all that was asked of it before."""
        return asyncio.get_running_loop().run_in_executor(self._thread, work, self._store)

    async def commit(self, operations: Sequence[Operation], *, frees_room: bool = False) -> None:
        """One that frees room must be possible on a full disk. What is too large for one step takes several, of which
        each leaves the cluster in order."""
        epoch = self.epoch
        if epoch is None:
            raise ApiError(ErrorCode.NOT_CONTROLLER, "this broker is not the controller")
        for number, multi in enumerate(in_multis(operations, [epoch])):
            try:
                await self._commit(epoch, multi, frees_room)
            except Exception:
                if number and self._is_clustered:  # those before it are in the store, and nobody has adopted them
                    self._is_in_doubt = True
                raise

    async def _commit(self, epoch: Check, multi: Sequence[Operation], frees_room: bool) -> None:
        try:
            await self.in_store(lambda store: store.multi(multi, urgent=frees_room))
        except StoreConflict as conflict:
            if conflict.operation is not epoch:
                raise
            if self.epoch is epoch:
                self.epoch = None
                self.on_deposed()
            raise ApiError(ErrorCode.NOT_CONTROLLER, "another broker is the controller now") from conflict
        except StoreUnavailable as error:
            if self._is_clustered:
                self._is_in_doubt = True
                raise ApiError(ErrorCode.REQUEST_TIMED_OUT, str(error)) from error
            self._logs.store_failed(error, is_full=error.is_full)
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error

    async def commit_and_adopt(self, operations: Sequence[Operation]) -> None:
        """Within a change: for one that is told by its operations alone."""
        if self.epoch is None:
            raise ApiError(ErrorCode.NOT_CONTROLLER, "this broker is not the controller")
        if operations:
            await self.commit(operations)
            written = {
                operation.path: operation.data if isinstance(operation, (Create, Set)) else None
                for operation in operations
                if not isinstance(operation, Check)
            }
            await self.adopt(self.damaged.folded(self._image, written))

    async def change_topics(
        self,
        plan: Callable[[ClusterImage], Plan[T] | Pauses[Plan[T]]],
        by: Requester | None = None,
    ) -> T:
        """What `plan` gives as an answer, when the topics that it changes are in the store. It may take turns: the
        image does not change meanwhile. Raises NOT_CONTROLLER."""

        async def change() -> T:
            planned = plan(self._image)
            answer, topics = planned if isinstance(planned, tuple) else await in_turns(planned)
            await self.commit_and_adopt(
                [Set(nodes.topic_path(name), nodes.encode_topic(topic)) for name, topic in topics.items()]
            )
            return answer

        return await self.change(change(), by)

    def take_over(self, epoch: Check) -> None:
        """This broker is the controller from now on. What the last one did may not have come to us yet."""
        self.epoch = epoch
        self._is_in_doubt = True

    async def refresh(self, paths: Iterable[str] | None = None) -> None:
        """Read these nodes again (by default: all), and adopt what they say."""
        wanted = None if paths is None else list(paths)

        await self.change(self._read_again(wanted))

    async def _read_again(self, paths: Sequence[str] | None) -> None:
        new = await self._with_what_is_there(self._image, paths)
        if new.brokers.get(self._node_id) != self._image.brokers.get(self._node_id):
            # Nodes are read one by one. The write that took us in has changed leaders too, and what we led before must
            # not be taken for what we lead by the new registration: so all is read that is as new as that.
            new = await self._with_what_is_there(new, None)
        await self.adopt(new, is_ours=False)

    async def _with_what_is_there(self, image: ClusterImage, paths: Sequence[str] | None) -> ClusterImage:
        try:
            found = await self.in_store(lambda store: stored_image.read_nodes(store, paths, image))
        except StoreUnavailable as error:
            raise ApiError(ErrorCode.REQUEST_TIMED_OUT, str(error)) from error
        return self.damaged.folded(image, found)

    # --- adopting an image ----------------------------------------------------------------------------------------

    async def adopt(self, new: ClusterImage, *, is_ours: bool = True) -> None:
        """What the store holds now becomes what this broker goes by. Call it within a change."""
        old = self._image
        if new is old:
            return
        made_anew = [name for name, topic in old.topics.items() if _is_other(topic, new.topics.get(name))]
        if made_anew:
            # The old one first, or the new one would be given its logs.
            await self.adopt(images.without_topics(old, made_anew), is_ours=is_ours)
            old = self._image
        added = list(self._replicas_here(new, old))
        if added:
            await self.make_logs(added)
        await self._publish(new, is_ours)
        gone = [tp for tp, _ in self._replicas_here(old, new)]
        if gone and await self.remove_logs(gone):
            deleted = [topic for topic in old.topics.values() if topic.name not in new.topics]
            await self._forget_deletions(deleted)

    def _replicas_here(self, image: ClusterImage, other: ClusterImage) -> Iterator[tuple[TopicPartition, TopicImage]]:
        """Those of `image` that `other` does not have here."""
        if image.topics is other.topics:
            return
        for name, topic in image.topics.items():
            known = other.topics.get(name)
            if known is topic:
                continue
            others = () if known is None else known.partitions
            for index, partition in enumerate(topic.partitions):
                is_there = index < len(others) and self._node_id in others[index].replicas
                if self._node_id in partition.replicas and not is_there:
                    yield TopicPartition(name, index), topic

    async def make_logs(self, wanted: Sequence[tuple[TopicPartition, TopicImage]]) -> None:
        """On a single node a disk that refuses is the failure of whoever wants them; in a cluster it is that of one
        replica, which others do without until it can be made."""
        pause = Pause()
        await self._forget_deleted([tp for tp, _ in wanted])
        known = dict(self._logs.unmade)
        for tp, topic in wanted:
            try:
                self._logs.create(tp, topic.id, self._log_config(topic.configs))
                if tp in known:
                    log.info("a replica could be made after all", extra={"partition": str(tp)})
            except (ApiError, OSError) as error:
                if not self._is_clustered:
                    raise
                if known.get(tp) != topic.id:  # else it was told
                    log.error("a replica could not be made", extra={"partition": str(tp), "why": str(error)})
            await pause.when_due()

    async def make_missing_logs(self) -> None:
        """In a cluster, now and then: those that the disk refused before. Who was told of their topics without them is
        told again."""
        if self._logs.unmade:
            await self.change(self._make_missing_logs())

    async def _make_missing_logs(self) -> None:
        wanted = []
        for tp, topic_id in list(self._logs.unmade.items()):
            topic = self._image.topics.get(tp.topic)
            if topic is not None and topic.id == topic_id and self._is_here(topic, tp.partition):
                wanted.append((tp, topic))
            else:
                self._logs.delete(tp)
        await self.make_logs(wanted)
        made = {topic.name: replace(topic) for tp, topic in wanted if tp not in self._logs.unmade}
        if made:
            await self._publish(images.with_topics(self._image, made.values()), is_ours=False)

    def _is_here(self, topic: TopicImage, index: int) -> bool:
        return index < len(topic.partitions) and self._node_id in topic.partitions[index].replicas

    async def _forget_deleted(self, partitions: Sequence[TopicPartition]) -> None:
        """Partitions of these names that were deleted a moment ago leave nothing behind in the checkpoints."""
        if self._logs.checkpointing.names_any_deleted(partitions):
            pause, steps = Pause(), self._logs.checkpointing.in_steps()
            try:
                while True:
                    next(steps)
                    await pause.when_due()
            except StopIteration as end:
                await asyncio.gather(*map(asyncio.wrap_future, end.value))

    async def remove_logs(self, partitions: Iterable[TopicPartition]) -> bool:
        """Whether all are gone. If one cannot be removed the others go all the same: no later topic may have them."""
        pause, is_done = Pause(), True
        for tp in partitions:
            try:
                self._logs.delete(tp)
            except (OSError, ApiError) as error:
                # Nobody sees it any more; the next start removes what is left.
                log.error("a log could not be removed", exc_info=error, extra={"partition": str(tp)})
                is_done = False
            await pause.when_due()
        return is_done

    async def _forget_deletions(self, deleted: Sequence[TopicImage]) -> None:
        """Their logs are gone from here, so the notes that say so are not needed any more, as far as we are
        concerned."""
        if not deleted:
            return
        topic_ids = [topic.id for topic in deleted]
        try:
            await self.in_store(lambda store: confirm_deletions(store, topic_ids, self._node_id))
        except (StoreConflict, StoreUnavailable) as error:  # the topics are gone for everybody
            log.warning("the note of a deletion is left for the next start", extra={"why": str(error)})

    async def _publish(self, new: ClusterImage, is_ours: bool) -> None:
        old, self._image = self._image, new
        self.changes += 1
        self._tell_subscribers()
        if is_ours and change_log.is_heard():
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

    def tell_all_again(self) -> None:
        """Something has changed that subscribers ask for beside the image."""
        self._image = replace(self._image)
        self._tell_subscribers()

    def _tell_again(self) -> None:
        self._telling_again = None
        self._tell_subscribers()


class _Subscriber:
    """`seen` is the last image that it has taken up."""

    def __init__(self, on_image: OnImage, seen: ClusterImage) -> None:
        self.on_image = on_image
        self.seen = seen


def _is_other(topic: TopicImage, now: TopicImage | None) -> bool:
    return now is not None and now.id != topic.id
