"""A folder that Apache Kafka 4.3.1 wrote: we read it, and make the same bytes from the same batches."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from ottla.common.ids import TopicId, TopicPartition
from ottla.records.record import iterate_batches, read_records
from ottla.storage import dump
from ottla.storage.loading.log_loader import load_log
from ottla.storage.log import Log
from ottla.storage.log_config import LogConfig
from ottla.storage.log_dirs import checkpoints
from ottla.storage.log_dirs.checkpoints import MetaProperties
from ottla.storage.log_dirs.log_dir import LogDir
from ottla.storage.log_manager import LogManager
from ottla.storage.results import Origin
from tests.storage.batches import read_all, slice_bytes
from tests.support.manual_clock import ManualClock

FOLDER = Path(__file__).parents[1] / "fixtures" / "kafka-log"
BASE_MS = 1_700_000_000_000
CONFIG = LogConfig(segment_bytes=4000, index_interval_bytes=300, segment_ms=7 * 24 * 3600 * 1000)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return Path(shutil.copytree(FOLDER, tmp_path / "data"))


def open_folder(directory: Path, *, clean: bool = True) -> Log:
    topic_partition = TopicPartition(directory.name.removesuffix("-0"), 0)
    return load_log(directory, topic_partition, TopicId(bytes(16)), CONFIG, clean=clean)


def test_the_manager_takes_the_folder_over(copy: Path) -> None:
    meta = checkpoints.read_meta_properties(copy)
    assert meta is not None
    logs = LogManager(
        [copy], node_id=1, cluster_id=meta.cluster_id, clock=ManualClock(BASE_MS), default_config=LogConfig()
    )
    logs.open()
    plain, txn = logs.get(TopicPartition("plain", 0)), logs.get(TopicPartition("txn", 0))
    assert plain is not None and txn is not None
    assert (plain.log_end_offset, plain.high_watermark, plain.recovery_point) == (200, 200, 200)
    assert (txn.log_end_offset, txn.last_stable_offset) == (17, 16)
    assert plain.leader_epochs.entries == [(0, 0)]
    assert plain.topic_id == checkpoints.read_partition_metadata(FOLDER / "plain-0")
    logs.close()


@pytest.mark.parametrize("clean", [True, False])
def test_every_record_is_there(copy: Path, clean: bool) -> None:
    log = open_folder(copy / "plain-0", clean=clean)
    expected = [b"value %d" % n for n in range(120)]
    expected += [f"{codec} {n}".encode() for codec in ("gzip", "snappy", "lz4", "zstd") for n in range(20)]
    assert read_all(log) == list(enumerate(expected))


@pytest.mark.parametrize("clean", [True, False])
def test_transactions_are_known(copy: Path, clean: bool) -> None:
    log = open_folder(copy / "txn-0", clean=clean)
    log.high_watermark = log.log_end_offset
    assert log.last_stable_offset == 16
    assert [first for _, first in log.aborted_transactions(0, 17)] == [4, 12]
    assert [first for _, first in log.aborted_transactions(8, 12)] == []
    (producer,) = log.producers.describe()
    assert (producer.last_sequence, producer.current_txn_start_offset) == (0 if producer.producer_epoch else 12, 16)


def test_times_lead_to_offsets(copy: Path) -> None:
    log = open_folder(copy / "plain-0")
    for n in (0, 1, 56, 57, 119):
        found = log.offset_for_timestamp(BASE_MS + n * 1000)
        assert found is not None and (found.offset, found.timestamp) == (n, BASE_MS + n * 1000)
    inside_gzip = log.offset_for_timestamp(BASE_MS + 205_500)
    assert inside_gzip is not None and inside_gzip.offset == 126
    latest = log.max_timestamp()
    assert latest is not None and (latest.offset, latest.timestamp) == (139, BASE_MS + 219_000)


@pytest.mark.parametrize("topic", ["plain", "txn"])
def test_the_same_batches_give_the_same_files(copy: Path, tmp_path: Path, topic: str) -> None:
    """Append Kafka's batches one by one as Kafka got them: every file that results is Kafka's, byte for byte."""
    original = FOLDER / f"{topic}-0"
    source = open_folder(copy / f"{topic}-0")
    (tmp_path / "ours").mkdir()
    ours = load_log(tmp_path / "ours", source.topic_partition, source.topic_id, CONFIG)
    for segment in source.segments:
        data = segment.path(".log").read_bytes()
        for position, header in iterate_batches(data):
            # As the marker of a coordinator, since a client may not send one; sequences were checked by Kafka.
            ours.append(
                data[position : position + header.size],
                leader_epoch=header.leader_epoch,
                now_ms=header.max_timestamp,
                origin=Origin.COORDINATOR if header.is_control else Origin.CLIENT,
            )
    checkpoints.write_partition_metadata(ours.dir, checkpoints.read_partition_metadata(original) or source.topic_id)
    ours.close()
    written = {path.name: path.read_bytes() for path in ours.dir.iterdir()}
    # Kafka leaves out transaction indexes without an entry.
    written = {name: data for name, data in written.items() if data or not name.endswith(".txnindex")}
    assert written == {path.name: path.read_bytes() for path in original.iterdir()}


def test_indexes_made_again_are_kafkas(copy: Path) -> None:
    for topic in ("plain-0", "txn-0"):
        before = {path.name: path.read_bytes() for path in (copy / topic).iterdir()}
        for path in (copy / topic).glob("*index"):
            path.unlink()
        log = open_folder(copy / topic)
        log.aborted_transactions(0, log.log_end_offset)
        for segment in log.segments:
            segment.finish()
        after = {path.name: path.read_bytes() for path in (copy / topic).iterdir()}
        assert {name: data for name, data in after.items() if data or name in before} == before


def test_small_files_are_written_as_kafka_writes_them(tmp_path: Path) -> None:
    offsets = checkpoints.read_offsets(FOLDER / checkpoints.RECOVERY_POINTS)
    checkpoints.write_offsets(tmp_path / "offsets", offsets)
    assert (tmp_path / "offsets").read_bytes() == (FOLDER / checkpoints.RECOVERY_POINTS).read_bytes()
    checkpoints.write_offsets(tmp_path / "none", {})
    assert (tmp_path / "none").read_bytes() == (FOLDER / checkpoints.LOG_STARTS).read_bytes()
    assert not checkpoints.read_offsets(FOLDER / checkpoints.CLEANER_OFFSETS)

    meta = checkpoints.read_meta_properties(FOLDER)
    assert isinstance(meta, MetaProperties)
    checkpoints.write_meta_properties(tmp_path, meta)
    kafkas, ours = ((one / "meta.properties").read_text().splitlines() for one in (FOLDER, tmp_path))
    assert [line[:1] for line in ours[:2]] == [line[:1] for line in kafkas[:2]] == ["#", "#"]
    assert sorted(ours[2:]) == sorted(kafkas[2:])

    epoch = json.loads((FOLDER / ".kafka_cleanshutdown").read_text())["brokerEpoch"]
    LogDir(tmp_path).write_clean_mark(broker_epoch=epoch)
    assert (tmp_path / ".kafka_cleanshutdown").read_bytes() == (FOLDER / ".kafka_cleanshutdown").read_bytes()


def test_dump_shows_what_kafka_wrote() -> None:
    folder = FOLDER / "txn-0"
    batches = list(dump.dump_log(folder / "00000000000000000003.log", records=True))
    assert [one.marker for one in batches if one.header.is_control] == ["commit", "abort", "commit", "abort"]
    assert not any(one.problem for one in batches)
    assert [one.first_offset for one in dump.dump_txn_index(folder / "00000000000000000003.txnindex")] == [4, 12]
    (producer,) = dump.dump_snapshot(folder / "00000000000000000017.snapshot")
    assert producer.current_txn_first_offset == 16
    for name in ("00000000000000000000", "00000000000000000057", "00000000000000000140"):
        for kind in (".index", ".timeindex"):
            assert dump.index_problems(FOLDER / "plain-0" / (name + kind)) == []
    first = next(dump.dump_log(FOLDER / "plain-0" / "00000000000000000140.log", records=True))
    assert (first.codec, first.records[0].value) == ("snappy", b"snappy 0")


def test_a_slice_can_be_cut_at_every_batch(copy: Path) -> None:
    log = open_folder(copy / "plain-0")
    for segment in log.segments:
        for _, header in segment.headers():
            data = slice_bytes(log.read(header.last_offset, 1, upper_offset=200, min_one=True))
            assert [one.offset for one in read_records(data)][-1] == header.last_offset
