"""The files of the spool: a folder for each driver, in it one file for each attempt of a task.

What counts is decided by Spark, not here: an attempt that was lost, repeated or left behind has a file like any other,
and only those whose results Spark has accepted are read. Nothing is fsynced: if the driver dies, the
batch runs again.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import threading
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from ottla.common.errors import OttlaError
from ottla.common.ids import TopicPartition
from ottla.spark.spool.wire import FRAME, Hello, SpoolRefused, Sum

_PREFIX = "ottla-spool-"
_LOCK = "lock"
_BUFFER_BYTES = 1024 * 1024


class Winner(NamedTuple):
    """An attempt whose result Spark has accepted, and what it says to have sent."""

    task: int
    attempt: int
    sum: Sum


class SpooledFrame(NamedTuple):
    partition: TopicPartition
    records: int
    # The caller's own: it may be changed in place.
    data: bytearray


class SpoolFolder:
    """A folder that is locked while its driver lives; those of drivers that died are removed by the next one."""

    def __init__(self, parent: str | Path) -> None:
        """Raises OttlaError when files cannot be written there."""
        self._parent = Path(parent)
        try:
            self._parent.mkdir(parents=True, exist_ok=True)
            # Under another name until it is locked: one without a lock is a leftover.
            unnamed = Path(tempfile.mkdtemp(prefix=f".{_PREFIX}", dir=self._parent))
            self._lock = (unnamed / _LOCK).open("wb")
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            self.path = unnamed.rename(self._parent / unnamed.name.removeprefix("."))
        except OSError as error:
            raise OttlaError(
                f"the driver cannot keep encoded records in {self._parent}: {error.strerror}; "
                "set spark.ottla.spool.dir to a folder on a disk with room for a batch."
            ) from None
        self._remove_leftovers()

    def _remove_leftovers(self) -> None:
        for other in self._parent.glob(f"{_PREFIX}*"):
            try:
                with (other / _LOCK).open("rb") as lock:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(other, ignore_errors=True)
            except OSError:
                continue  # it lives, or is another user's

    def close(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.close()


class SpooledBatch:
    """What the attempts of one run of one batch have sent."""

    def __init__(self, folder: Path) -> None:
        # Not Spark's number of the batch: a task left over from an earlier run of it must not be taken for one of this.
        self.id = uuid.uuid4().hex
        self._folder = folder / self.id
        self._folder.mkdir()
        self._guard = threading.Lock()
        self._received: dict[tuple[int, int], Sum] = {}
        # Why no more can be taken, such as a full disk.
        self.failure: OttlaError | None = None
        self.bytes_received = 0

    # --- what the server does, in a thread for each attempt

    def create(self, hello: Hello) -> BinaryIO:
        """Raises SpoolRefused when it is no use to send anything."""
        if self.failure is not None:
            raise SpoolRefused(str(self.failure))
        try:
            return self._path(hello.task, hello.attempt).open("xb", buffering=_BUFFER_BYTES)
        except OSError as error:
            raise self.failed(error) from None

    def failed(self, error: OSError) -> SpoolRefused:
        """This batch cannot be spooled; all attempts are told so, and whoever waits for them."""
        self.failure = self.failure or OttlaError(
            f"the driver cannot keep the batch in {self._folder.parent}: {error.strerror}; make room there, or set "
            "spark.ottla.spool.dir to a folder on a larger disk."
        )
        return SpoolRefused(str(self.failure))

    def note(self, hello: Hello, total: Sum) -> None:
        with self._guard:
            self._received[hello.task, hello.attempt] = total
            self.bytes_received += total.bytes

    # --- what the publisher reads

    def check(self, winners: Iterable[Winner]) -> None:
        """Raises OttlaError when what a winner sent is not here as it sent it."""
        for one in winners:
            if one.sum.frames and self._received.get((one.task, one.attempt)) != one.sum:
                raise OttlaError(f"what task {one.task} encoded did not arrive whole on the driver: run it again.")

    def frames(self, winners: Iterable[Winner]) -> Iterator[SpooledFrame]:
        """In the order of the tasks, and of each task as it sent them. It may be read again from the start."""
        for one in sorted(winners):
            if one.sum.frames:
                with self._path(one.task, one.attempt).open("rb", buffering=_BUFFER_BYTES) as file:
                    yield from _read_frames(file, one.sum.frames)

    def close(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def _path(self, task: int, attempt: int) -> Path:
        return self._folder / f"{task}-{attempt}"


def _read_frames(file: BinaryIO, count: int) -> Iterator[SpooledFrame]:
    for _ in range(count):
        size, name_size, partition, records = FRAME.unpack(file.read(FRAME.size))
        topic = file.read(name_size).decode()
        data = bytearray(size)
        if file.readinto(data) != size:  # type: ignore[attr-defined]
            raise OttlaError(f"the spool's file {os.fspath(file.name)} is cut off: somebody else changed it.")
        yield SpooledFrame(TopicPartition(topic, partition), records, data)
