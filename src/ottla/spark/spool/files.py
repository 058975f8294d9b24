"""The files of the spool: a folder for each driver, in it one for each batch, in it a file for each attempt of a task.

The folders are all that is known of a batch: it is there from its beginning to its end, in whichever processes of the
driver these happen. What counts is decided by Spark, not here: an attempt that was lost, repeated or left behind has a
file like any other, and only those whose results Spark has accepted are read. Nothing is fsynced: if the driver dies,
the batch runs again.
"""

from __future__ import annotations

import os
import re
import shutil
import struct
import uuid
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

from ottla.client.batch_in_file import BatchInFile, FileCut, KeptOpen
from ottla.common.errors import OttlaError
from ottla.common.failures import Retriable
from ottla.common.ids import TopicPartition
from ottla.spark.driver_folder import DriverFolder
from ottla.spark.spool.wire import FRAME, SUM, Hello, SpoolRefused, Sum, frame_head, last_frame

_PREFIX = "ottla-spool-"
_ID = re.compile(r"[0-9a-f]{32}")
# A thousand tasks may be at it.
_WRITE_BYTES = 64 * 1024
# So much of a frame is read to see what it is. Where its batch is larger than the other, that stays where it is.
_READ_BYTES = 4 * 1024
_IN_MEMORY_BYTES_MAX = 64 * 1024

# Topic, partition, record count, batch.
EncodedBatch = tuple[str, int, int, bytes]


class Winner(NamedTuple):
    """An attempt whose result Spark has accepted, and what it says to have sent."""

    task: int
    attempt: int
    sum: Sum


class SpooledFrame(NamedTuple):
    partition: TopicPartition
    records: int
    # The caller's own: it may be changed in place. Where it is large it stays in its file, but for its header.
    data: bytearray | BatchInFile


class SpoolDamaged(Retriable):
    """What was sent is not there any more as it was sent."""


class SpoolFolder:
    def __init__(self, parent: str | Path) -> None:
        """Raises OttlaError when files cannot be written there."""
        try:
            self._folder = DriverFolder(parent, _PREFIX)
        except OSError as error:
            raise OttlaError(
                f"the driver cannot keep encoded records in {parent}: {error.strerror}; "
                "set spark.ottla.spool.dir to a folder on a disk with room for a batch."
            ) from None
        self.path = self._folder.path

    def close(self) -> None:
        self._folder.close()

    def begin(self) -> SpooledBatch:
        """Raises FileNotFoundError when somebody has removed the folder, as those who clean up /tmp do."""
        # Not Spark's number of the batch: a task left over from an earlier run of it must not be taken for one of this.
        batch = SpooledBatch(self.path / uuid.uuid4().hex)
        batch.path.mkdir()
        return batch

    def find(self, batch_id: str) -> SpooledBatch | None:
        batch = SpooledBatch(self.path / batch_id)
        return batch if _ID.fullmatch(batch_id) and batch.is_open else None


@dataclass(frozen=True)
class SpooledBatch:
    """What the attempts of one run of one batch have sent."""

    path: Path

    @property
    def id(self) -> str:
        return self.path.name

    @property
    def is_open(self) -> bool:
        return self.path.is_dir()

    # --- what the server does, in a thread for each attempt, and attempts that can do it themselves

    def create(self, hello: Hello) -> BinaryIO:
        """Raises SpoolRefused when it is no use to send anything."""
        try:
            return self._part(hello).open("xb", buffering=_WRITE_BYTES)
        except FileExistsError:
            raise SpoolRefused(f"attempt {hello.attempt} of task {hello.task} is being sent already") from None
        except OSError as error:
            raise self.failed(error) from None

    def failed(self, error: OSError) -> SpoolRefused:
        if not self.is_open:
            return SpoolRefused("this batch is over")
        return SpoolRefused(
            f"the driver cannot keep the batch in {self.path.parent}: {error.strerror}; make room there, or set "
            "spark.ottla.spool.dir to a folder on a larger disk."
        )

    def write(self, hello: Hello, batches: Iterable[EncodedBatch]) -> Sum:
        """All that an attempt encodes. Raises SpoolRefused, and whatever `batches` raises. What an attempt that was
        killed leaves behind goes with the batch."""
        file = self.create(hello)
        frames = size = 0
        try:
            for topic, partition, records, data in batches:
                self.append(file, frame_head(topic, partition, records, len(data)))
                self.append(file, data)
                frames, size = frames + 1, size + len(data)
            self.append(file, last_frame(Sum(frames, size)))
            self.flush(file)
            self.keep(hello)
        except BaseException:
            self.discard(hello)
            raise
        finally:
            close_quietly(file)
        return Sum(frames, size)

    def append(self, file: BinaryIO, data: bytes | memoryview) -> None:
        """Raises SpoolRefused when the disk takes no more."""
        try:
            file.write(data)
        except OSError as error:
            raise self.failed(error) from None

    def flush(self, file: BinaryIO) -> None:
        try:
            file.flush()
        except OSError as error:
            raise self.failed(error) from None

    def keep(self, hello: Hello) -> None:
        """It is whole. Raises SpoolRefused when nobody wants it any more."""
        try:
            self._part(hello).rename(self._whole(hello.task, hello.attempt))
        except OSError as error:
            raise self.failed(error) from None

    def discard(self, hello: Hello) -> None:
        """At once: others may need the room."""
        self._part(hello).unlink(missing_ok=True)

    # --- what the publisher reads

    def check(self, winners: Iterable[Winner]) -> None:
        """Raises SpoolDamaged when what a winner sent is not here as it sent it."""
        for winner in winners:
            if winner.sum.frames and self._sum(winner) != winner.sum:
                raise SpoolDamaged(f"what task {winner.task} encoded did not arrive whole on the driver: run it again.")

    def frames(self, winners: Iterable[Winner]) -> Iterator[SpooledFrame]:
        """In the order of the tasks, and of each task as it sent them. It may be read again from the start."""
        for winner in sorted(winners):
            if winner.sum.frames:
                file, position = self._opened(winner), 0
                for _ in range(winner.sum.frames):
                    frame, position = _read_frame(file, position)
                    yield frame

    def _opened(self, winner: Winner) -> KeptOpen:
        path = self._whole(winner.task, winner.attempt)
        try:
            return KeptOpen(path)
        except OSError as error:
            raise SpoolDamaged(f"the spool's file {path} cannot be read: {error.strerror}.") from None

    def close(self) -> None:
        """Attempts that still send are refused from here on."""
        over = self.path.with_name(f".{self.path.name}")
        try:
            self.path.rename(over)
        except OSError:
            over = self.path  # it is gone already
        shutil.rmtree(over, ignore_errors=True)

    def _sum(self, winner: Winner) -> Sum | None:
        """What stands at the end of the file."""
        try:
            with self._whole(winner.task, winner.attempt).open("rb") as file:
                file.seek(-SUM.size, os.SEEK_END)
                return Sum(*SUM.unpack(file.read()))
        except OSError:
            return None

    def _whole(self, task: int, attempt: int) -> Path:
        return self.path / f"{task}-{attempt}"

    def _part(self, hello: Hello) -> Path:
        return self.path / f"{hello.task}-{hello.attempt}.part"


def close_quietly(file: BinaryIO) -> None:
    """What counts was flushed. After a failure a buffer may be left that the disk has no room for."""
    with suppress(OSError):
        file.close()


def _read_frame(file: KeptOpen, position: int) -> tuple[SpooledFrame, int]:
    """The frame, and where the next one begins. Raises SpoolDamaged."""
    try:
        start = os.pread(file.fileno(), _READ_BYTES, position)
        size, name_size, partition, records = FRAME.unpack_from(start)
        body = FRAME.size + name_size
        topic = start[FRAME.size : body].decode()
        data: bytearray | BatchInFile
        if body + size <= len(start):
            data = bytearray(start[body : body + size])
        elif size <= _IN_MEMORY_BYTES_MAX:
            data = bytearray(os.pread(file.fileno(), size, position + body))
            if len(data) != size:
                raise FileCut(file)
        else:
            data = BatchInFile(file, position + body, size)
            if position + body + size > os.fstat(file.fileno()).st_size:
                raise FileCut(file)
    except (OSError, FileCut, ValueError, struct.error):
        raise SpoolDamaged(
            f"the spool's file {os.fspath(file.name)} is not as it was written: run the batch again."
        ) from None
    return SpooledFrame(TopicPartition(topic, partition), records, data), position + body + size
