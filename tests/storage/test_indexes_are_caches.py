"""Delete, zero, cut or swap any index or snapshot: everything can still be read, and nothing is lost."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from ottla.storage import dump
from ottla.storage.log import Log
from ottla.storage.log_config import LogConfig
from ottla.storage.results import Origin
from ottla.storage.segments.indexes import CorruptIndex, OffsetIndex, TimeIndex
from tests.storage.batches import NOW_MS, append, open_log, read_all
from tests.storage.markers import TRANSACTIONAL, marker

CONFIG = LogConfig(segment_bytes=3000, index_interval_bytes=200)
KINDS = (".index", ".timeindex", ".txnindex", ".snapshot")


def fill(directory: Path, count: int = 60, size: int = 20) -> Log:
    log = open_log(directory, CONFIG)
    for n in range(count):
        append(log, b"%04d" % n + b"." * size, timestamp=NOW_MS + n)
        producer = {"producer_id": n % 3, "producer_epoch": 0}
        append(log, b"txn", base_sequence=n // 3, attributes=TRANSACTIONAL, timestamp=NOW_MS + n, **producer)
        if n % 6 > 2:
            end = marker(commit=n % 2 == 0, timestamp=NOW_MS + n, **producer)
            log.append(end, leader_epoch=0, now_ms=NOW_MS, origin=Origin.COORDINATOR)
    log.high_watermark = log.log_end_offset
    return log


def view(log: Log) -> object:
    """Everything a reader can ask for."""
    log.high_watermark = end = log.log_end_offset
    times = [log.offset_for_timestamp(NOW_MS + n) for n in range(0, 61, 7)]
    starts = [log.read(n, 1 << 20, upper_offset=end, min_one=True).first_offset for n in range(0, end, 11)]
    transactions = (log.last_stable_offset, log.aborted_transactions(0, end), log.aborted_transactions(50, 60))
    described = sorted(log.producers.describe())
    return read_all(log), times, starts, transactions, described, log.max_timestamp()


def damage(path: Path, how: str, other: Path) -> None:
    if how == "delete":
        path.unlink()
    elif how == "zero":
        path.write_bytes(bytes(path.stat().st_size))
    elif how == "rubbish":
        path.write_bytes(os.urandom(path.stat().st_size or 5))
    elif how == "cut":
        os.truncate(path, path.stat().st_size * 2 // 3)
    elif how == "cut at an entry":
        os.truncate(path, path.stat().st_size // 24 * 12)
    elif how == "longer":
        os.truncate(path, path.stat().st_size + 8 * 12 * 17)  # as Kafka leaves its indexes after a crash
    else:
        shutil.copy(other, path)


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", ["delete", "zero", "rubbish", "cut", "cut at an entry", "longer", "swap"])
def test_damage_to_every_file_of_a_kind(tmp_path: Path, kind: str, how: str, clean: bool) -> None:
    if kind == ".txnindex" and how == "cut at an entry":
        pytest.skip(
            "a list of aborted transactions that lacks its end cannot be told from a whole one, in Kafka either"
        )
    log = fill(tmp_path / "log")
    expected = view(log)
    log.close()
    other = fill(tmp_path / "other", size=33)
    other.close()
    others = sorted((tmp_path / "other").glob("*" + kind))
    for number, path in enumerate(sorted((tmp_path / "log").glob("*" + kind))):
        damage(path, how, others[(number + 1) % len(others)])
    if kind == ".snapshot" and how == "swap":
        # The CRC is right and the producers are other ones: only recovery from the log would show it.
        return
    again = open_log(tmp_path / "log", CONFIG, clean=clean)
    assert view(again) == expected
    append(again, b"more")
    again.close()
    for segment in again.segments:
        for suffix in (".index", ".timeindex"):
            if segment.path(suffix).exists() and how not in ("cut at an entry", "longer", "swap"):
                assert dump.index_problems(segment.path(suffix)) == []


@pytest.mark.parametrize("kind", [".index", ".timeindex", ".txnindex"])
@pytest.mark.parametrize("how", ["delete", "zero", "rubbish", "cut", "longer", "swap"])
def test_damage_is_mended_also_if_the_first_thing_is_an_append(tmp_path: Path, kind: str, how: str) -> None:
    log = fill(tmp_path / "log")
    log.close()
    expected = read_all(open_log(tmp_path / "log", CONFIG, clean=True))
    other = fill(tmp_path / "other", size=33)
    other.close()
    for path in sorted((tmp_path / "log").glob("*" + kind)):
        damage(path, how, next((tmp_path / "other").glob("*" + kind)))
    again = open_log(tmp_path / "log", CONFIG, clean=True)
    for n in range(100):
        end = marker(commit=False, producer_id=n % 3) if n % 4 == 0 else None
        if end is not None:
            again.append(end, leader_epoch=0, now_ms=NOW_MS, origin=Origin.COORDINATOR)
        else:
            append(again, b"more", timestamp=NOW_MS + 100 + n)
    assert read_all(again)[: len(expected)] == expected
    again.close()
    last = open_log(tmp_path / "log", CONFIG, clean=True)
    assert read_all(last)[: len(expected)] == expected
    assert last.log_end_offset == again.log_end_offset


def test_an_index_made_again_reaches_the_disk(tmp_path: Path) -> None:
    log = fill(tmp_path)
    log.close()
    before = {path.name: path.read_bytes() for path in tmp_path.glob("*index")}
    for path in tmp_path.glob("*index"):
        path.unlink()
    again = open_log(tmp_path, CONFIG, clean=True)
    again.close()
    assert {path.name: path.read_bytes() for path in tmp_path.glob("*index")} == before


def test_an_index_of_another_segment_never_leads_past_the_record(tmp_path: Path) -> None:
    log = fill(tmp_path)
    expected = read_all(log)
    log.close()
    names = [segment.path(".index") for segment in log.segments]
    contents = [path.read_bytes() for path in names]
    for shift in range(1, len(names)):
        for path, content in zip(names, contents[shift:] + contents[:shift], strict=True):
            path.write_bytes(content)
        again = open_log(tmp_path, CONFIG, clean=True)
        for offset, _ in expected[::3]:
            assert read_all(again, start=offset, max_bytes=1)[0][0] == offset


def test_entries_of_earlier_runs_stay_on_disk_until_they_are_needed(tmp_path: Path) -> None:
    index = OffsetIndex(tmp_path / "x.index", 100)
    for n in range(1, 5):
        index.append(100 + n * 10, n * 1000)
    index.persist()
    again = OffsetIndex(tmp_path / "x.index", 100)
    again.attach_later()
    assert again.last() == (140, 4000)
    again.append(150, 5000)
    assert again.lookup(155) == (150, 5000)
    assert len(again._offsets) == 1
    assert again.lookup(125) == (120, 2000)
    assert again.entries() == [(110, 1000), (120, 2000), (130, 3000), (140, 4000), (150, 5000)]
    again.truncate_to(130)
    again.persist()
    assert (tmp_path / "x.index").stat().st_size == 16
    again.append(131, 2500)
    again.persist()
    fresh = OffsetIndex(tmp_path / "x.index", 100)
    fresh.attach_later()
    assert fresh.entries() == [(110, 1000), (120, 2000), (131, 2500)]


def test_a_time_index_only_grows_in_time(tmp_path: Path) -> None:
    index = TimeIndex(tmp_path / "x.timeindex", 0)
    for timestamp, offset in ((5, 1), (5, 2), (4, 3), (9, 4)):
        index.maybe_append(timestamp, offset)
    assert index.entries() == [(5, 1), (9, 4)]
    assert [index.lookup(at) for at in (4, 5, 8, 9)] == [(-1, 0), (5, 1), (5, 1), (9, 4)]
    index.persist()
    (tmp_path / "x.timeindex").write_bytes(b"\0" * 24)
    again = TimeIndex(tmp_path / "x.timeindex", 0)
    again.attach_later()
    with pytest.raises(CorruptIndex):
        again.lookup(5)
