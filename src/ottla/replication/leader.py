"""What a leader knows of its followers, and what follows from it: the high watermark, and who is in sync.

Rules
- The watermark is the lowest log end of those that it waits for: the leader itself, the committed in-sync replicas and
  those of a change that is on its way to the controller (either set may be the one that the next leader comes from).
  It moves only while min.insync.replicas are in sync (KIP-966), and never back.
- A fetch acknowledges all that lies below its offset. It counts if it came with the leader epoch in force, from a
  replica under its current registration, and did not diverge: the edge sees to that before it calls `on_fetch`.
- A replica leaves when it has not had everything for replica.lag.time.max.ms. It joins when it has all that is
  committed *and* all that was there when this epoch began (KIP-101): below that the leader itself may still have
  records that the old leader has not committed. The watermark waits for a replica that is about to join (it has
  caught up within the same time), or that would never be met while a partition is written to without a pause.

The in-sync set, of which the controller has the last word:

    COMMITTED --propose_*--> PROPOSED --accepted, or an image with a newer partition epoch--> COMMITTED
                                      --refused for what it proposes--> COMMITTED, as before
                                      --we are behind (partition epoch, leader epoch)--> UNCERTAIN: it may have been
                                        accepted before; only an image tells --> COMMITTED
                                      --no answer--> PROPOSED: the same once more

One leader epoch has one such object; a new epoch, also of the same leader, begins with a new one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum

from ottla.common.errors import ErrorCode
from ottla.metadata.image import PartitionImage

UNKNOWN = -1
# Longer ago than any lag.
_NEVER = -(1 << 62)


class Follower:
    """A replica as its leader sees it."""

    __slots__ = (
        "broker_epoch",
        "caught_up_ms",
        "end_offset",
        "fetched_ms",
        "id",
        "leader_end_then",
        "log_start_offset",
    )

    def __init__(self, replica: int, caught_up_ms: int) -> None:
        self.id = replica
        # Nothing is known of it before its first fetch in this epoch.
        self.end_offset = UNKNOWN
        self.log_start_offset = UNKNOWN
        self.broker_epoch = UNKNOWN
        # When it last had everything.
        self.caught_up_ms = caught_up_ms
        # Its last fetch: when, and where our log ended then.
        self.fetched_ms = UNKNOWN
        self.leader_end_then = UNKNOWN

    def is_caught_up(self, leader_end: int, now_ms: int, lag_ms_max: int) -> bool:
        return self.end_offset == leader_end or now_ms - self.caught_up_ms <= lag_ms_max


class IsrState(Enum):
    COMMITTED = "committed"
    PROPOSED = "proposed"
    UNCERTAIN = "uncertain"


# What an answer to a proposal means where it is neither success nor a reason to ask once more.
_REFUSED = frozenset({ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED})
_BEHIND = frozenset(
    {
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.NEW_LEADER_ELECTED,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)


class LeaderState:
    __slots__ = (
        "_counted",
        "epoch_start",
        "followers",
        "isr",
        "joining",
        "leader_epoch",
        "min_insync",
        "node_id",
        "partition_epoch",
        "proposed",
        "replicas",
        "state",
    )

    def __init__(self, node_id: int, image: PartitionImage, epoch_start: int, min_insync: int, now_ms: int) -> None:
        """`epoch_start` is where our log ended when the epoch began."""
        self.node_id = node_id
        self.leader_epoch = image.leader_epoch
        self.epoch_start = epoch_start
        self.min_insync = min_insync
        self.replicas: tuple[int, ...] = ()
        self.followers: dict[int, Follower] = {}
        self.isr: frozenset[int] = frozenset()
        self.partition_epoch = UNKNOWN
        self.state = IsrState.COMMITTED
        self.proposed: frozenset[int] = frozenset()
        # Not in sync, but about to be: the watermark waits for them.
        self.joining: set[int] = set()
        self._counted: tuple[Follower, ...] = ()
        self.on_image(image, now_ms)

    # --- what happens

    def on_image(self, image: PartitionImage, now_ms: int) -> bool:
        """What the controller has made of the partition, in the same leader epoch. Whether anything is new."""
        if image.partition_epoch <= self.partition_epoch:
            return False
        self.partition_epoch = image.partition_epoch
        self.replicas = image.replicas
        # Those in sync get their time from now on to fetch; the others have to show that they can.
        self.followers = {
            replica: self.followers.get(replica) or Follower(replica, now_ms if replica in image.isr else _NEVER)
            for replica in image.replicas
            if replica != self.node_id
        }
        self._set_isr(frozenset(image.isr), IsrState.COMMITTED)
        return True

    def on_fetch(
        self, replica: int, broker_epoch: int, offset: int, log_start_offset: int, leader_end: int, now_ms: int
    ) -> bool:
        """A fetch that counts: this replica has everything below `offset`. Whether the watermark may move by it."""
        follower = self.followers[replica]
        if offset >= leader_end:
            follower.caught_up_ms = now_ms
        elif offset >= follower.leader_end_then != UNKNOWN and follower.broker_epoch == broker_epoch:
            # It has all that there was when it last asked.
            follower.caught_up_ms = max(follower.caught_up_ms, follower.fetched_ms)
        follower.end_offset = offset
        follower.log_start_offset = log_start_offset
        follower.broker_epoch = broker_epoch
        follower.fetched_ms = now_ms
        follower.leader_end_then = leader_end
        return follower in self._counted

    def had_everything(self, replica: int, at_ms: int) -> None:
        """The log is about to grow beyond this replica's end; at that time it fetched, and had all of it."""
        follower = self.followers.get(replica)
        if follower is not None and at_ms > follower.caught_up_ms:
            follower.caught_up_ms = at_ms

    def consider_joining(self, replica: int, leader_end: int, now_ms: int, lag_ms_max: int) -> None:
        """Let the watermark wait for a replica outside, if it keeps up and can be in sync soon."""
        if replica in self.isr or replica in self.joining:
            return
        follower = self.followers[replica]
        if follower.end_offset >= self.epoch_start and follower.is_caught_up(leader_end, now_ms, lag_ms_max):
            self.joining.add(replica)
            self._recount()

    def drop_stragglers(self, leader_end: int, now_ms: int, lag_ms_max: int) -> bool:
        """Do not wait any longer for those who were about to join. Whether the watermark may move by it."""
        lost = {
            replica
            for replica in self.joining
            if not self.followers[replica].is_caught_up(leader_end, now_ms, lag_ms_max)
        }
        self.joining -= lost
        self._recount()
        return bool(lost)

    def give_up(self, replicas: set[int]) -> None:
        """These do not join any more."""
        self.joining -= replicas
        self._recount()

    # --- what follows

    @property
    def is_under_min_isr(self) -> bool:
        return len(self.isr) < self.min_insync

    @property
    def is_alone(self) -> bool:
        """The watermark waits for nobody else."""
        return not self._counted

    def high_watermark(self, own_end: int) -> int:
        """How far it may go, if the leader itself has everything below `own_end`; it may lie below where it is."""
        if len(self.isr) < self.min_insync:
            return UNKNOWN
        for follower in self._counted:
            if follower.end_offset < own_end:
                own_end = follower.end_offset
        return own_end

    def low_watermark(self, own_start: int, is_alive: Callable[[int], bool]) -> int:
        """Below it no live replica has records any more."""
        starts = [follower.log_start_offset for replica, follower in self.followers.items() if is_alive(replica)]
        return min([own_start, *starts])

    # --- changes of the in-sync set

    def may_join(self, replica: int, high_watermark: int) -> bool:
        if replica in self.isr or self.state is not IsrState.COMMITTED:
            return False
        end_offset = self.followers[replica].end_offset
        return end_offset >= high_watermark and end_offset >= self.epoch_start

    def lagging(self, leader_end: int, now_ms: int, lag_ms_max: int) -> frozenset[int]:
        """Members that have not had everything for too long."""
        if self.state is not IsrState.COMMITTED:
            return frozenset()
        return frozenset(
            replica
            for replica in self.isr
            if replica != self.node_id
            and not (replica in self.followers and self.followers[replica].is_caught_up(leader_end, now_ms, lag_ms_max))
        )

    def propose(self, isr: Iterable[int]) -> None:
        """On its way to the controller, from now on until it is settled."""
        assert self.state is IsrState.COMMITTED
        self.proposed = frozenset(isr)
        self.state = IsrState.PROPOSED
        self._recount()

    def proposal(self) -> list[tuple[int, int]]:
        """The replicas proposed in the order of the assignment, each with the registration under which it fetched; -1
        where none is known."""
        assert self.state is IsrState.PROPOSED
        return [
            (replica, self.followers[replica].broker_epoch if replica in self.followers else UNKNOWN)
            for replica in self.replicas
            if replica in self.proposed
        ]

    def on_accepted(self, isr: Iterable[int], partition_epoch: int) -> bool:
        """The controller's answer to the proposal. Whether it is news: an image may have said so before."""
        if partition_epoch < self.partition_epoch or self.state is not IsrState.PROPOSED:
            return False
        self.partition_epoch = partition_epoch
        self._set_isr(frozenset(isr), IsrState.COMMITTED)
        return True

    def on_refused(self, code: ErrorCode, partition_epoch: int) -> None:
        """`partition_epoch` is that of the proposal: an answer to an older one means nothing now."""
        if self.state is not IsrState.PROPOSED or partition_epoch != self.partition_epoch:
            return
        if code in _REFUSED:
            self._set_isr(self.isr, IsrState.COMMITTED)
        elif code in _BEHIND:
            self.state = IsrState.UNCERTAIN

    def _set_isr(self, isr: frozenset[int], state: IsrState) -> None:
        self.isr = isr
        self.state = state
        self.proposed = frozenset()
        self.joining = {replica for replica in self.joining if replica in self.followers} - isr
        self._recount()

    def _recount(self) -> None:
        waited_for = self.isr | self.proposed | self.joining
        self._counted = tuple(
            # One that is in sync and no replica any more (a reassignment that is half told) holds nothing back: it is
            # never elected.
            follower
            for replica, follower in self.followers.items()
            if replica in waited_for
        )
