"""A log, its disk and the model beside them: how they are compared, while all is well and after a crash."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass
from pathlib import Path

from ottla.records import batch as v2
from ottla.records.record import Record
from ottla.storage.loading.log_loader import load_log
from ottla.storage.log import Log
from ottla.storage.log_config import LogConfig
from ottla.storage.segments.timestamps import TimestampOffset
from tests.storage.batches import NOW_MS, TOPIC, TOPIC_ID
from tests.storage.model.batches import Batch, parse, read_committed, read_uncommitted
from tests.storage.model.history import History, table
from tests.storage.model.journaled_disk import JournaledDisk

IDEMPOTENT, TRANSACTIONAL, COORDINATOR = (10, 11), (20, 21), (30,)
# Of a slot's next producer id, when the one before was forgotten.
NEXT_ID = 100


@dataclass(frozen=True)
class Checkpoint:
    """What the checkpoint files say."""

    recovery_point: int = 0
    log_start: int = 0
    cleaned: int = 0


class Subject:
    def __init__(self, folder: Path, rng: random.Random) -> None:
        self._folder = folder
        self._cuts = 0
        self.now_ms = NOW_MS
        compact = rng.random() < 0.6
        self.settings = {
            "cleanup_compact": compact,
            "cleanup_delete": not compact or rng.random() < 0.3,
            "segment_bytes": rng.choice((900, 1500, 4000)),
            "index_interval_bytes": rng.choice((0, 150, 400)),
            "segment_index_bytes": rng.choice((72, 1 << 20)),
            "segment_ms": rng.choice((5_000, 1 << 40)),
            "retention_ms": rng.choice((-1, 3_000, 20_000)),
            "retention_bytes": rng.choice((-1, -1, 2_500)),
            "delete_retention_ms": rng.choice((0, 1_000)),
        }
        self.config = LogConfig(**self.settings)
        self.disk = JournaledDisk(self._new_folder())
        self.model = History(delete_retention_ms=self.config.delete_retention_ms)
        self.checkpoint_files = Checkpoint()
        self.leader_epoch = 0
        self.transcript: list[str] = []
        self._slots = {one: one for one in (*IDEMPOTENT, *TRANSACTIONAL, *COORDINATOR)}
        # Batches of producers that a restart brought back may be fewer than five.
        self._restarted = False
        # What is under way: batches that may or may not be there already, offsets that may go, a round's bounds.
        self._pending: list[Batch] = []
        self._delete_up_to = 0
        self._compacting: tuple[int, int] | None = None
        self.log = self._load(clean=False)

    def _new_folder(self) -> Path:
        self._cuts += 1
        folder = self._folder / str(self._cuts)
        folder.mkdir()
        return folder

    def _load(self, *, clean: bool) -> Log:
        files = self.checkpoint_files
        log = load_log(
            self.disk.root,
            TOPIC,
            TOPIC_ID,
            self.config,
            clean=clean,
            log_start_offset=files.log_start,
            recovery_point=files.recovery_point,
            cleaned_offset=files.cleaned,
            now_ms=self.now_ms,
            disk=self.disk,
        )
        log.high_watermark = log.log_end_offset
        return log

    def say(self, line: str) -> None:
        self.transcript.append(line)

    # -- comparing --

    def _stored(self) -> list[Batch]:
        """What is in the files, which must be a chain of whole batches."""
        found = []
        for segment in self.log.segments:
            raw = segment.path(".log").read_bytes()[: segment.size] if segment.size else b""
            at = 0
            while at < len(raw):
                header = v2.read_header(raw, at)
                assert v2.HEADER_SIZE <= header.size <= len(raw) - at, f"no batch at {at} of {segment}"
                found.append(parse(raw[at : at + header.size]))
                at += header.size
        for before, after in itertools.pairwise(found):
            assert before.last < after.base, f"{after.base} comes after {before.last}"
        return found

    def check(self, rng: random.Random) -> None:
        log, model = self.log, self.model
        _same("start and end", (log.log_start_offset, log.log_end_offset), (model.start, model.end))
        _same("the last stable offset", log.last_stable_offset, model.last_stable_offset)
        visible = model.visible()
        _same("read_uncommitted", read_uncommitted(log, rng), visible)
        for start in (model.start, rng.randint(model.start, model.end)):
            _same(f"read_committed from {start}", read_committed(log, start, rng), model.committed(start))
        _same("the table", table(model.committed(model.start)), model.table())
        self._check_producers()
        self._check_times(rng)
        for one in visible[-1:]:
            # Not known where everything was deleted and a crash took the log start back.
            assert log.leader_epochs.epoch_for(one.last) in (one.leader_epoch, -1)

    def _check_producers(self) -> None:
        found = {
            one.producer_id: (
                one.producer_epoch,
                one.last_sequence,
                one.last_timestamp,
                one.coordinator_epoch,
                one.current_txn_start_offset,
            )
            for one in self.log.producers.describe()
        }
        expected = {
            producer_id: (
                known.epoch,
                known.last_sequence,
                known.last_timestamp,
                known.coordinator_epoch,
                known.txn_first,
            )
            for producer_id, known in self.model.producers.items()
        }
        _same("producers (epoch, sequence, timestamp, coordinator epoch, first offset)", found, expected)

    def _check_times(self, rng: random.Random) -> None:
        for timestamp in (0, self.now_ms + rng.randint(-6_000, 8_000)):
            found, expected = self.log.offset_for_timestamp(timestamp), self.model.first_since(timestamp)
            _same(f"the first record since {timestamp}", _place(found), _place(expected))
        segments = [one.base_offset for one in self.log.segments]
        _same("the latest record", _place(self.log.max_timestamp()), _place(self.model.latest(segments)))

    # -- after a crash --

    def _recover(self, *, power: bool) -> None:
        durable, compacting = self.log.recovery_point, self._compacting
        pending, self._pending = self._pending, []
        self.log = self._load(clean=False)
        self.leader_epoch += 1
        self._restarted = True
        assert not self.log.damage, self.log.damage
        self._compare_after_crash(durable if power else self.model.end, compacting, pending)
        self._delete_up_to = 0
        self._compacting = None
        files = self.checkpoint_files
        first = self.log.segments[0].base_offset
        self.model.start = min(max(files.log_start, first), self.model.end)
        self._take_over_producers()
        self.say(f"... starts again with {self.model.start} to {self.model.end}")

    def _compare_after_crash(self, durable: int, compacting: tuple[int, int] | None, pending: list[Batch]) -> None:
        """Of what was there, nothing is missing below `durable`, and nothing is there that never was."""
        model, end = self.model, self.log.log_end_offset
        found = {one.base: one for one in self._stored()}
        for one in pending:
            if found.get(one.base) != one:
                break
            model.append(one)
        assert durable <= end <= model.end, f"the log ends at {end}, was synced to {durable} and went to {model.end}"
        lost = {base for base, one in model.stored.items() if base not in found and one.last >= durable}
        start = self.checkpoint_files.log_start  # what is below may be missing anywhere
        holes = [base for base in lost if max(base, start) < min(model.stored[base].last + 1, end)]
        assert not holes, f"{holes} are lost, and the log goes on to {end}"
        below = {base: one for base, one in model.stored.items() if base not in lost and base >= self._delete_up_to}
        if compacting is not None:
            kept = model.stored
            model.stored = {base: one for base, one in below.items() if base in found or one.last < durable}
            model.check_compaction(found, *compacting, self.now_ms, done=False)
            model.stored = kept
        else:
            for base, one in below.items():
                assert base in found, f"{one} is lost"
        for base, one in found.items():
            known = model.forms.get(base, set())
            reduced = compacting is not None and base in model.stored and one.shape == model.stored[base].shape
            assert one in known or reduced, f"{one} was never there"
        model.lose(lost, end)
        model.store(found.values())

    def _take_over_producers(self) -> None:
        """Where no record of a producer is left it may be forgotten, and where records are left only its last ones
        count."""
        actual = {one.producer_id: one for one in self.log.producers.describe()}
        first = self.log.segments[0].base_offset
        stored = list(self.model.stored.values())
        for producer_id, known in list(self.model.producers.items()):
            of_it = [one for one in stored if one.producer_id == producer_id and one.base in self.model.fates]
            line = actual.get(producer_id)
            if line is None or (line.last_sequence != known.last_sequence and not of_it):
                assert not of_it, f"producer {producer_id} is forgotten"
                self.model.forget_producer(producer_id, self.model.end if line is None else first)
                self._slots[producer_id % NEXT_ID] = producer_id + NEXT_ID
                continue
            if known.txn_first >= 0 and line.current_txn_start_offset != known.txn_first:
                left = [one.base for one in of_it if one.base > known.txn_first]
                assert known.txn_first < first, f"the transaction of {producer_id}"
                assert line.current_txn_start_offset == min(left, default=-1)
                known.txn_first = line.current_txn_start_offset
            if self.config.cleanup_compact:  # the batch or marker that said so may be gone
                known.coordinator_epoch = line.coordinator_epoch
                known.last_timestamp = line.last_timestamp


def _place(found: TimestampOffset | Record | None) -> tuple[int, int] | None:
    return None if found is None else (found.offset, found.timestamp)


def _same(what: str, found: object, expected: object) -> None:
    if found == expected:
        return
    if isinstance(found, list) and isinstance(expected, list):
        found, expected = [one for one in found if one not in expected], [one for one in expected if one not in found]
    raise AssertionError(f"{what}: found {found}, expected {expected}")
