"""Brokers that break a promise on purpose, to show that the crash tests would notice.

`python -m tests.crash.broken_broker KIND start ...` is `ottla start ...` with one thing done wrong. Nothing in the
package knows of it: the mistakes are patched in here, in the broker's process.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import Any

from tests.crash.list_worker import TOPIC as LISTS
from tests.crash.load import TOPIC
from tests.crash.transactional_worker import TOPIC as BANK
from tests.support.brokers import OttlaProcess


def acknowledge_before_writing() -> None:
    """Writes to the log reach the file half a second late: a crash in between takes what was acknowledged."""
    from ottla.storage.disk import FastDisk

    def later(fd: int, data: bytes, position: int) -> int:
        if f"/{TOPIC}-" in os.readlink(f"/proc/self/fd/{fd}"):
            threading.Timer(0.5, os.pwrite, (os.dup(fd), data, position)).start()
            return len(data)
        return os.pwrite(fd, data, position)

    FastDisk.pwrite = staticmethod(lambda fd, data, position: later(fd, bytes(data), position))  # type: ignore[assignment]
    FastDisk.pwritev = staticmethod(  # type: ignore[assignment]
        lambda fd, buffers, position: later(fd, b"".join(map(bytes, buffers)), position)
    )


def forget_to_sync() -> None:
    """fsync of a segment says yes and does nothing."""
    real = os.fsync

    def fsync(fd: int) -> None:
        if not os.readlink(f"/proc/self/fd/{fd}").endswith(".log"):
            real(fd)

    os.fsync = fsync  # type: ignore[assignment]


def forget_producers_on_restart() -> None:
    """Recovery finds the records, but not who wrote them: a retry after the crash looks new."""
    from ottla.storage.loading import log_loader

    real = log_loader.load_log

    def load(*arguments: Any, **options: Any) -> Any:
        log = real(*arguments, **options)
        log.producers.entries.clear()
        return log

    _replace_everywhere(real, load)


def take_duplicates_for_new() -> None:
    """Sequences are not looked at."""
    from ottla.storage.log import Log

    Log._check_producer = lambda self, header, origin, now_ms: None  # type: ignore[method-assign]


def drop_the_last_batch_on_restart() -> None:
    """Recovery takes a whole batch for a torn one."""
    from ottla.storage.loading import log_loader

    real = log_loader.load_log

    def load(*arguments: Any, **options: Any) -> Any:
        log = real(*arguments, **options)
        if log.topic == TOPIC and log.log_end_offset > log.log_start_offset:
            log.truncate_to(log.log_end_offset - 1, 0)
        return log

    _replace_everywhere(real, load)


def let_readers_one_batch_too_far() -> None:
    """The last stable offset is behind the first undecided batch, not before it."""
    from ottla.storage.log import Log

    def too_far(log: Log) -> int:
        unstable = log.producers.first_unstable_offset(log.high_watermark)
        return log.high_watermark if unstable is None else min(unstable + 1, log.high_watermark)

    Log.last_stable_offset = property(too_far)  # type: ignore[assignment]


def keep_quiet_about_aborted_transactions() -> None:
    """Readers are not told what to pass over."""
    from ottla.storage.log import Log

    Log.aborted_transactions = lambda self, start, upper: []  # type: ignore[method-assign]


def abort_in_the_last_partition() -> None:
    """A commit that is an abort in one of its partitions."""
    from ottla.broker.coordinators.transactions import transaction_markers
    from ottla.broker.coordinators.transactions.transaction_markers import MarkerWriter
    from ottla.records.marker import control_batch

    real = MarkerWriter.write

    def write(self: Any, where: Any, producer_id: int, commit: bool, batch: bytearray) -> Any:
        if where.topic in (BANK, LISTS) and where.partition == 3 and commit:
            epoch = int.from_bytes(batch[51:53], "big")
            batch = control_batch(producer_id, epoch, False, 0, self._broker.clock.now_ms())
        return real(self, where, producer_id, commit, batch)

    transaction_markers.MarkerWriter.write = write  # type: ignore[method-assign]


def commit_offsets_at_once() -> None:
    """Offsets of a transaction count whether it is committed or not."""
    from ottla.groups.offsets import OffsetStore

    real = OffsetStore.end_transaction
    OffsetStore.end_transaction = lambda self, producer_id, *, committed: real(self, producer_id, committed=True)  # type: ignore[method-assign]


def _replace_everywhere(real: Callable[..., Any], broken: Callable[..., Any]) -> None:
    """Also where it was imported by name."""
    import ottla.storage.log_manager  # noqa: F401  (so that it is there to be patched)

    for module in list(sys.modules.values()):
        for name, value in list(vars(module).items()) if getattr(module, "__name__", "").startswith("ottla") else ():
            if value is real:
                setattr(module, name, broken)


KINDS = {
    one.__name__.replace("_", "-"): one
    for one in (
        acknowledge_before_writing,
        forget_to_sync,
        forget_producers_on_restart,
        take_duplicates_for_new,
        drop_the_last_batch_on_restart,
        let_readers_one_batch_too_far,
        keep_quiet_about_aborted_transactions,
        abort_in_the_last_partition,
        commit_offsets_at_once,
    )
}


class BrokenBroker(OttlaProcess):
    """As `OttlaProcess`, with a mistake."""

    kind = ""

    def command(self) -> list[str]:
        command = super().command()
        at = command.index("ottla")
        return [*command[:at], "tests.crash.broken_broker", self.kind, *command[at + 1 :]]


if __name__ == "__main__":
    KINDS[sys.argv.pop(1)]()
    from ottla.cli.main import main

    main()
