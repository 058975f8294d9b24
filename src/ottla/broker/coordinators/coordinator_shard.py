"""One partition of a coordinator's topic at work: requests and timers in, records to the log, answers out.

Every operation runs the same way, of groups as of transactions. It fills a Result (or raises ApiError and has changed
nothing). The records go to the log as one batch and are replayed at once, so that the next request sees them; when the
log says they are committed, the follow-ups run and the answers go out. On one node that is usually the same moment.

Whoever waits for the end of an operation asks `answered` (a request) or `promised` (who has other things to do
meanwhile); what has to happen whether or not anybody waits is a follow-up (`Result.after_commit`).
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from ottla.broker.chores.timers import Handle
from ottla.broker.coordinators.timer_table import TimerTable
from ottla.broker.partitions.partition import Committed
from ottla.common.clock import Clock
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.result import Result, Ticket, TimerKey, TimerOrder
from ottla.common.steps import Steps

NEVER = 1 << 62
# What a failed write means to clients of a coordinator, as Kafka maps it.
COORDINATOR_ERRORS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}

# What decides: state that changes only by replay.
M = TypeVar("M")
CallLater = Callable[[int, Callable[[], object]], Handle]


class RecordLog(Protocol):
    """The log of the partition, as the shard sees it."""

    def append(self, records: Sequence[Any], producer: tuple[int, int] | None) -> int:
        """Write all or none as one batch; the offset of the first. Raises ApiError."""

    def when_committed(self, done: Committed) -> None:
        """Call `done`, now or later, when all that has been appended is as durable as the topic asks for."""


class CoordinatorShard(ABC, Generic[M]):
    errors: ClassVar[Mapping[ErrorCode, ErrorCode]] = COORDINATOR_ERRORS

    def __init__(self, machine: M, log: RecordLog, clock: Clock, call_later: CallLater | None) -> None:
        """Without `call_later` somebody else calls `fire_timers`."""
        self.log = log
        self.timers = TimerTable()
        self.is_loading = True
        self.has_resigned = False
        self._machine = machine
        self._clock = clock
        self._call_later = call_later
        self._alarm_ms = NEVER
        self._alarm: Handle | None = None

    # --- what differs between coordinators

    @abstractmethod
    def replay(self, record: Any, offset: int, producer_id: int) -> None:
        """Take over a record that is in the log: the only way in which what is durable changes. `producer_id` is that
        of the transaction which it belongs to, or -1."""

    @abstractmethod
    def replay_stored(self, key: bytes, value: bytes | None, offset: int, producer_id: int) -> None:
        """The same while the log is read. Raises MalformedMessage."""

    @abstractmethod
    def replay_marker(self, producer_id: int, *, committed: bool) -> None:
        """A transaction of this producer has ended, in this partition as well."""

    @abstractmethod
    def fire(self, key: TimerKey, payload: Any) -> None:
        """A timer is due."""

    def deliver(self, ticket: Ticket, message: Any, error: ErrorCode) -> None:
        """Answer who waits; with an error the answer rests on records that are not committed. Not abstract: only
        operations that give out tickets need it, and transactions have none."""
        raise NotImplementedError

    # --- how every operation runs

    def begin(self) -> Result:
        return Result(self._clock.now_ms())

    def run(self, operation: Callable[[Result], Any]) -> Result:
        """`operation` fills a Result, or raises ApiError and has changed nothing. What it gives back is the reply."""
        out = self.begin()
        out.reply = operation(out)
        self.settle(out)
        return out

    def settle(self, out: Result) -> None:
        """Carry out what an operation asked for. `out.error` is set when it has come to its end."""
        if self.has_resigned:
            self._finish(out, ApiError(ErrorCode.NOT_COORDINATOR))
            return
        try:
            if out.records:
                offset = self.log.append(out.records, out.producer)
                producer_id = -1 if out.producer is None else out.producer[0]
                for number, record in enumerate(out.records):
                    self.replay(record, offset + number, producer_id)
            if out.timers:
                self._set_timers(out.timers)
            for step in out.next_steps:
                self.run(step)
        except Exception as error:
            # The members that were to go are still there, so their timers must be, too.
            self._set_timers([order for order in out.timers if order.delay_ms is not None])
            self._finish(out, error)
            if isinstance(error, ApiError):
                return  # the log does not take it
            raise  # a bug; whoever waits is answered all the same
        # Also if nothing was written: the answer may rest on records of another request that are not committed yet.
        self.log.when_committed(partial(self._finish, out))

    def _finish(self, out: Result, failure: Exception | None) -> None:
        out.error = ErrorCode.NONE
        if failure is not None:
            code = failure.code if isinstance(failure, ApiError) else ErrorCode.UNKNOWN_SERVER_ERROR
            out.error, out.message = self.errors.get(code, code), str(failure)
        # What would follow a success can be neither written nor timed by one who has resigned.
        error = ErrorCode.NOT_COORDINATOR if self.has_resigned else out.error
        bug: Exception | None = None
        for follow_up in out.follow_ups:
            try:
                after = self.begin()
                follow_up(error, after)
                if after.records or after.timers or after.answers or after.follow_ups:
                    self.settle(after)
            except Exception as failed:  # whoever waits is answered whatever happens
                out.error, bug = ErrorCode.UNKNOWN_SERVER_ERROR, failed
        for ticket, message in out.answers:
            try:
                self.deliver(ticket, message, out.error)
            except Exception as failed:  # one that cannot be given keeps nobody else from theirs
                bug = failed
        if bug is not None:
            raise bug

    def read(self, look: Callable[[M], Any]) -> Result:
        """What `look` makes of the machine, as `reply`: an answer like any other, it shows nothing that is not
        committed."""
        return self.run(lambda _: look(self._machine))

    # --- time

    def _set_timers(self, orders: Sequence[TimerOrder]) -> None:
        if orders:
            self.timers.carry_out(orders, self._clock.monotonic_ms())
            self._look_at_clock()

    def _look_at_clock(self) -> None:
        deadline_ms = self.timers.next_deadline()
        if deadline_ms is not None and deadline_ms < self._alarm_ms:
            self._alarm_ms = deadline_ms
            self._set_alarm(deadline_ms)

    def _set_alarm(self, deadline_ms: int) -> None:
        self._cancel_alarm()
        if self._call_later is not None:
            self._alarm = self._call_later(max(0, deadline_ms - self._clock.monotonic_ms()), self.fire_timers)

    def _cancel_alarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def fire_timers(self) -> None:
        """Everything that is due by the clock."""
        now_ms = self._clock.monotonic_ms()
        self._alarm_ms = -1  # whatever is set meanwhile is looked at below
        try:
            while (due := self.timers.pop_due(now_ms)) is not None:
                self.fire(*due)
        finally:  # one that fails must not stop the clock for the rest
            self._alarm_ms = NEVER
            self._look_at_clock()

    # --- life

    def begin_loading(self) -> None:
        """The log is read from its beginning: what a try that failed has left is forgotten."""
        self.is_loading = True

    def loaded(self) -> None:
        """The log has been read: from now on it answers."""
        self.is_loading = False

    def resign(self) -> None:
        """The partition is not ours any more: nothing is written or timed from now on."""
        self.has_resigned = True
        self.timers.clear()
        self._cancel_alarm()


def answered(out: Result) -> Steps[Any]:
    """What the operation answers, when its records are committed. Raises what it ended with."""
    if out.error is None:
        yield _until_ended(out)
    if out.error:
        out.check()
    return out.reply


def promised(out: Result) -> Awaitable[None] | None:
    """The same for who has other things to do meanwhile: None if it has ended well. Raises ApiError."""
    out.check()
    return None if out.error is not None else _check_at_end(out)


async def _check_at_end(out: Result) -> None:
    if out.error is None:
        await _until_ended(out)
    out.check()


def _until_ended(out: Result) -> asyncio.Future[None]:
    ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    out.after_commit(lambda error, _: give(ended, None))
    return ended


def asked(ask: Callable[[Ticket], object]) -> Steps[Any]:
    """Ask with a ticket: the answer, which another operation may give."""
    ticket: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    ask(ticket)
    return ticket.result() if ticket.done() else (yield ticket)


def give(ticket: asyncio.Future[Any], message: Any) -> None:
    if not ticket.done():  # its connection may be gone
        ticket.set_result(message)
