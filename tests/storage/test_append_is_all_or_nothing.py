"""An append that is refused has changed nothing, whichever file could not be opened for it.

A log that was just loaded looks at its files when it first needs them. Each of these looks may fail for want of file
descriptors. If one failed after the bytes of a batch were written, the log would be half changed: a batch that is sent
again would be taken for a repetition and acknowledged, though it is nowhere; an aborted transaction would be read.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from ottla.common.errors import ApiError, ErrorCode
from ottla.storage.log import Log
from ottla.storage.log_config import LogConfig
from ottla.storage.results import Origin
from tests.storage.batches import NOW_MS, append, batch, open_log, read_all
from tests.storage.markers import TRANSACTIONAL, marker

# An entry of the indexes for every few batches.
CONFIG = LogConfig(index_interval_bytes=150)


class Scarce:
    """No file can be opened at the n-th time, counted from 1, that somebody tries; later it can be again."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, at: int) -> None:
        self.calls = 0
        self._at = at
        self._open = os.open
        monkeypatch.setattr(os, "open", self)

    def __call__(self, *arguments: Any, **more: Any) -> int:
        self.calls += 1
        if self.calls == self._at:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return self._open(*arguments, **more)


def persist(log: Log, data: bytearray, origin: Origin = Origin.CLIENT) -> int:
    """As a producer that sends again what was refused; gives how often it was."""
    refused = 0
    while True:
        try:
            log.append(bytearray(data), leader_epoch=0, now_ms=NOW_MS, origin=origin)
        except ApiError as error:
            assert error.code is ErrorCode.KAFKA_STORAGE_ERROR
            refused += 1
        else:
            log.high_watermark = log.log_end_offset
            return refused


def history(log: Log) -> int:
    refused = 0
    for number in range(8):
        value = b"%d" % number * 50
        refused += persist(
            log, batch(value, timestamp=NOW_MS + number, producer_id=1, producer_epoch=0, base_sequence=number)
        )
        refused += persist(
            log,
            batch(
                b"aborted",
                producer_id=2,
                producer_epoch=0,
                base_sequence=number,
                attributes=TRANSACTIONAL,
                timestamp=NOW_MS,
            ),
        )
        refused += persist(log, marker(commit=False, producer_id=2), Origin.COORDINATOR)
    return refused


@pytest.mark.parametrize("before", ["records", "nothing"])
def test_a_file_that_cannot_be_opened_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    for at in range(1, 100):
        folder = tmp_path / str(at)
        log = open_log(folder, CONFIG)
        if before == "records":
            for number in range(10):
                append(log, b"before", timestamp=NOW_MS - 10 + number)
        log.close()
        log = open_log(folder, CONFIG, clean=True, recovery_point=log.log_end_offset)
        first = log.log_end_offset
        with monkeypatch.context() as patch:
            scarce = Scarce(patch, at)
            assert history(log) == (1 if scarce.calls >= at else 0)
        values = [value for _, value in read_all(log, first) if value is not None and len(value) == 50]
        assert values == [b"%d" % number * 50 for number in range(8)]
        expected = [(2, first + 3 * number + 1) for number in range(8)]
        assert log.aborted_transactions(first, log.log_end_offset) == expected
        log.close()
        again = open_log(folder, CONFIG)
        again.high_watermark = again.log_end_offset
        assert again.aborted_transactions(first, again.log_end_offset) == expected
        if scarce.calls < at:
            assert at > 1, "no file was opened"
            return
    raise AssertionError("files are opened without end")


@pytest.mark.parametrize("damage", ["missing", "of another segment"])
def test_an_abort_is_known_though_the_index_had_to_be_made_again(tmp_path: Path, damage: str) -> None:
    """Kafka makes no index of aborted transactions before there is one: an empty partition of it has none."""
    append(log := open_log(tmp_path), b"first")
    log.roll(NOW_MS)
    log.close()
    index = log.segments[-1].txns
    if damage == "missing":
        os.unlink(index.path)
    else:
        Path(index.path).write_bytes(b"\0" * 5)
    log = open_log(tmp_path, clean=True, recovery_point=log.log_end_offset)
    begins = append(log, b"aborted", producer_id=2, producer_epoch=0, base_sequence=0, attributes=TRANSACTIONAL)
    log.append(marker(commit=False, producer_id=2), leader_epoch=0, now_ms=NOW_MS, origin=Origin.COORDINATOR)
    log.high_watermark = log.log_end_offset
    assert log.aborted_transactions(0, log.log_end_offset) == [(2, begins)]
