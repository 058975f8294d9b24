"""Markers for partitions that other brokers lead: WriteTxnMarkers, one queue and one request under way per broker
(Kafka's TransactionMarkerChannelManager). A leader answers after half a second at the latest, about what is not
committed by then with REQUEST_TIMED_OUT. From then on such a partition goes with others of its kind, in a queue and on
a connection of their own, until it is quick again: the rest would wait for it each time.

What comes in while a request is under way goes with the next one, markers of all transactions together. What a broker
does not take (it cannot be reached, it does not lead the partition any more, replicas are missing) waits, and goes out
again with all others that wait, so what a broken broker costs does not depend on how many transactions wait for it. By
then another one may lead: the image says who, each time. A change of the image lets nobody wait, not even for the
answer to a request that is under way: an answer counts for those only that have not been sent elsewhere meanwhile.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING

from ottla.broker.cluster.peers import Channel, PeerUnavailable
from ottla.common.errors import ErrorCode
from ottla.common.ids import TopicPartition, partitions_by_topic
from ottla.metadata.image import NO_LEADER
from ottla.protocol.messages import WriteTxnMarkersRequest, WriteTxnMarkersResponse

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.coordinators.transactions.transaction_markers import Completion

log = logging.getLogger("ottla.transactions")

# The partition is past this transaction: somebody else has ended it there. Trying again cannot help.
PERMANENT = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED)
_OVER = (ErrorCode.NONE, *PERMANENT)
_RETRY_MS, _RETRY_MS_MAX = 100, 1_000
_TIMEOUT_MS = 30_000
# With so many a request is large enough; the others go with the next one.
_PARTITIONS_PER_REQUEST = 10_000

Queue = dict["Completion", dict[TopicPartition, None]]
Route = Callable[["Completion", TopicPartition], None]
Arrived = Callable[["Completion", TopicPartition, ErrorCode], None]
InBackground = Callable[[Awaitable[None], str], object]


class MarkerChannels:
    def __init__(self, broker: Broker, route: Route, arrived: Arrived, in_background: InBackground) -> None:
        """`route` finds the way of a marker that has to go again; `arrived` hears of those that are there, or never
        will be."""
        self._broker = broker
        self._route = route
        self._arrived = arrived
        self._in_background = in_background
        self._channels: dict[tuple[int, Channel], _Channel] = {}
        # Their last marker was not committed when its leader had to answer.
        self._slow: set[TopicPartition] = set()
        self._is_stopped = False

    def add(self, leader: int, completion: Completion, partitions: Iterable[TopicPartition]) -> None:
        """`leader` may be NO_LEADER: then they wait until there is one."""
        for partition in partitions:
            channel = self._channel(leader, Channel.SLOW_MARKERS if partition in self._slow else Channel.MARKERS)
            _put(channel.next, completion, (partition,))
            self._send_soon(channel)

    def _channel(self, leader: int, lane: Channel) -> _Channel:
        channel = self._channels.get((leader, lane))
        if channel is None:
            channel = self._channels[leader, lane] = _Channel(leader, lane)
        return channel

    def stop(self) -> None:
        self._is_stopped = True

    def on_image(self) -> None:
        """Leaders may have moved."""
        for channel in list(self._channels.values()):
            for completion, partition in channel.take_moved(self._leader_of):
                self._slow.discard(partition)
                self._route(completion, partition)

    def _leader_of(self, where: TopicPartition) -> int:
        topic = self._broker.image.topics.get(where.topic)
        if topic is None or where.partition >= len(topic.partitions):
            return NO_LEADER
        return topic.partitions[where.partition].leader

    # --- sending

    def _send_soon(self, channel: _Channel) -> None:
        if not (channel.is_sending or self._is_stopped):
            channel.is_sending = True
            self._in_background(self._send_all(channel), "sending markers failed")

    async def _send_all(self, channel: _Channel) -> None:
        try:
            while not channel.is_down and channel.begin():
                await self._send(channel)
        finally:
            channel.is_sending = False
            channel.put_off_what_is_under_way()
            if channel.later:
                self._retry_later(channel)

    async def _send(self, channel: _Channel) -> None:
        request = WriteTxnMarkersRequest(markers=[_marker(*sent) for sent in channel.under_way.items()])
        try:
            answer: WriteTxnMarkersResponse = await self._broker.peers.request(
                channel.leader, request, channel.lane, timeout_ms=_TIMEOUT_MS
            )
        except PeerUnavailable as error:
            channel.note_down(str(error))
            return
        channel.note_up()
        codes = {
            (result.producer_id, topic.name, row.partition_index): ErrorCode(row.error_code)
            for result in answer.markers
            for topic in result.topics
            for row in topic.partitions
        }
        answered, channel.under_way = channel.under_way, {}
        for completion, partitions in answered.items():
            for partition in partitions:
                code = codes.get((completion.markers.producer_id, *partition), ErrorCode.UNKNOWN_SERVER_ERROR)
                was_slow = partition in self._slow
                if code is ErrorCode.REQUEST_TIMED_OUT:
                    self._slow.add(partition)
                else:
                    self._slow.discard(partition)
                if code in _OVER:
                    self._arrived(completion, partition, code)
                else:
                    # One that takes long is asked for twice a second.
                    is_news = not (was_slow and code is ErrorCode.REQUEST_TIMED_OUT)
                    channel.put_off(completion, partition, code, is_news=is_news)

    # --- what was not taken

    def _retry_later(self, channel: _Channel) -> None:
        if not (channel.is_pausing or self._is_stopped):
            channel.is_pausing = True
            self._in_background(self._retry(channel), "sending markers again failed")

    async def _retry(self, channel: _Channel) -> None:
        await self._broker.timers.sleep(channel.next_pause_ms())
        channel.is_pausing = False
        channel.is_down = channel.leader == NO_LEADER
        again, channel.later = channel.later, {}
        for completion, partitions in again.items():
            for partition in partitions:
                self._route(completion, partition)


class _Channel:
    """To one broker, on one of two connections. A marker is in one of the three queues."""

    def __init__(self, leader: int, lane: Channel) -> None:
        self.leader = leader
        self.lane = lane
        # What goes with the next request, what is with the one under way, and what is to try again after a pause.
        self.next: Queue = {}
        self.under_way: Queue = {}
        self.later: Queue = {}
        self.is_sending = False
        self.is_pausing = False
        # Nobody has answered the last request: what comes now waits for the next try.
        self.is_down = leader == NO_LEADER
        self._pause_ms = _RETRY_MS

    def begin(self) -> bool:
        """Whether there is something to send; it is under way then."""
        count = 0
        while self.next and count < _PARTITIONS_PER_REQUEST:
            completion = next(iter(self.next))
            partitions = self.next.pop(completion)
            if completion.is_current:
                self.under_way[completion] = partitions
                count += len(partitions)
        return bool(self.under_way)

    def take_moved(self, leader_of: Callable[[TopicPartition], int]) -> list[tuple[Completion, TopicPartition]]:
        """Out of all queues: those that belong elsewhere now."""
        moved: list[tuple[Completion, TopicPartition]] = []
        for queue in (self.next, self.under_way, self.later):
            for completion, partitions in list(queue.items()):
                gone = [partition for partition in partitions if leader_of(partition) != self.leader]
                moved += [(completion, partition) for partition in gone]
                for partition in gone:
                    del partitions[partition]
                if not partitions:
                    del queue[completion]
        return moved

    def put_off(self, completion: Completion, partition: TopicPartition, why: ErrorCode, *, is_news: bool) -> None:
        if is_news and not self.later:
            what = {"broker": self.leader, "partition": str(partition), "why": why.name}
            log.info("a broker does not take a marker now, will try again", extra=what)
        _put(self.later, completion, (partition,))

    def put_off_what_is_under_way(self) -> None:
        for completion, partitions in self.under_way.items():
            _put(self.later, completion, partitions)
        self.under_way = {}
        if self.is_down:
            for completion, partitions in self.next.items():
                _put(self.later, completion, partitions)
            self.next = {}

    def note_down(self, why: str) -> None:
        if self._pause_ms == _RETRY_MS:
            log.warning("markers cannot be sent, will try again", extra={"broker": self.leader, "why": why})
        self.is_down = True

    def note_up(self) -> None:
        self._pause_ms = _RETRY_MS

    def next_pause_ms(self) -> int:
        pause_ms, self._pause_ms = self._pause_ms, min(2 * self._pause_ms, _RETRY_MS_MAX)
        return pause_ms


def _put(queue: Queue, completion: Completion, partitions: Iterable[TopicPartition]) -> None:
    queue.setdefault(completion, {}).update(dict.fromkeys(partitions))


def _marker(completion: Completion, partitions: Iterable[TopicPartition]) -> WriteTxnMarkersRequest.WritableTxnMarker:
    markers = completion.markers
    return WriteTxnMarkersRequest.WritableTxnMarker(
        producer_id=markers.producer_id,
        producer_epoch=markers.epoch,
        transaction_result=markers.commit,
        # Whoever leads the partition is the coordinator, so its epoch is the partition's.
        coordinator_epoch=completion.shard.partition.leader_epoch,
        transaction_version=markers.version,
        topics=[
            WriteTxnMarkersRequest.WritableTxnMarkerTopic(name=topic, partition_indexes=indexes)
            for topic, indexes in partitions_by_topic(partitions).items()
        ],
    )
