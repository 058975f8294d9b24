"""What may happen to a log: each action is done to the real one and to the model."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from ottla.common.errors import ApiError, ErrorCode
from ottla.records import batch as v2
from ottla.records.compression import Codec
from ottla.records.record import Record, build_batch
from ottla.storage.compaction.plan import make_job, survey
from ottla.storage.results import Origin
from tests.storage.batches import NOW_MS
from tests.storage.cleaning import run_round
from tests.storage.markers import marker
from tests.storage.model.batches import parse
from tests.storage.model.journaled_disk import Crash
from tests.storage.model.subject import COORDINATOR, IDEMPOTENT, NEXT_ID, TRANSACTIONAL, Checkpoint, Subject

KEYS = [b"a", b"b", b"c", b"d", b"long key " * 6]
VALUES = [None, None, None, b"1", b"2", b"3", b"4"]


class Actions(Subject):
    """Every public method but `crash_during` is an action; its choices come from `rng`."""

    # -- appending --

    def _records(self, rng: random.Random) -> list[Record]:
        stamp = self.now_ms + rng.choice((0, 0, 0, -2_000, 7_000))
        return [
            Record(n, stamp + rng.choice((0, 0, 5, -5)), rng.choice(KEYS), rng.choice(VALUES))
            for n in range(rng.randint(1, 3))
        ]

    def _batch(self, rng: random.Random, **fields: int) -> bytearray:
        codec = rng.choice((Codec.NONE, Codec.NONE, Codec.NONE, Codec.ZSTD))
        return build_batch(self._records(rng), codec=codec, **fields)  # type: ignore[arg-type]

    def _append(self, batches: list[bytearray], origin: Origin = Origin.CLIENT) -> None:
        base = self.model.end
        self._pending = []
        for data in batches:
            stamped = bytearray(data)
            v2.stamp(stamped, 0, base, self.leader_epoch)
            self._pending.append(parse(bytes(stamped)))
            base = self._pending[-1].last + 1
        data = b"".join(batches)
        result = self.log.append(data, leader_epoch=self.leader_epoch, now_ms=self.now_ms, origin=origin)
        assert (result.base_offset, result.last_offset, result.duplicate) == (self.model.end, base - 1, False)
        for one in self._pending:
            self.model.append(one)
        self._pending = []
        self.log.high_watermark = self.log.log_end_offset

    def append_plain(self, rng: random.Random) -> None:
        batches = [self._batch(rng) for _ in range(rng.choice((1, 1, 1, 2, 3)))]
        self.say(f"append {len(batches)} plain batches at {self.model.end}")
        self._append(batches)

    def append_idempotent(self, rng: random.Random) -> None:
        producer_id = self._slots[rng.choice(IDEMPOTENT)]
        known = self.model.producers.get(producer_id)
        epoch = known.epoch if known else 0
        sequence = known.next_sequence if known else 0
        if known and rng.random() < 0.1:
            epoch, sequence = epoch + 1, 0
        self.say(f"append of producer {producer_id} epoch {epoch} sequence {sequence} at {self.model.end}")
        self._append([self._batch(rng, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)])

    def append_transactional(self, rng: random.Random) -> None:
        slot = rng.choice((*TRANSACTIONAL, *COORDINATOR))
        producer_id = self._slots[slot]
        known = self.model.producers.get(producer_id)
        epoch = known.epoch if known else 0
        sequence = known.next_sequence if known else 0
        origin = Origin.CLIENT
        if slot in COORDINATOR:  # offsets that are committed with a transaction have no sequence
            sequence, origin = -1, Origin.COORDINATOR
        data = self._batch(
            rng,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            attributes=v2.TRANSACTIONAL_BIT,
        )
        self.say(f"append in a transaction of {producer_id} epoch {epoch} sequence {sequence} at {self.model.end}")
        self._append([data], origin)

    def end_transaction(self, rng: random.Random) -> None:
        open_ones = [one for one, known in self.model.producers.items() if known.txn_first >= 0]
        if rng.random() < 0.1:  # a marker where the transaction has no records
            open_ones = [one for one, known in self.model.producers.items() if one % NEXT_ID in TRANSACTIONAL]
        if not open_ones:
            return
        producer_id = rng.choice(sorted(open_ones))
        commit = rng.random() < 0.5
        epoch = self.model.producers[producer_id].epoch + rng.choice((0, 0, 1))
        self.say(f"{'commit' if commit else 'abort'} {producer_id} epoch {epoch} at {self.model.end}")
        data = marker(commit=commit, producer_id=producer_id, producer_epoch=epoch, timestamp=self.now_ms)
        self._append([data], Origin.COORDINATOR)

    def retry(self, rng: random.Random) -> None:
        """A batch that is there comes again: it is recognised, or refused, and never written twice."""
        candidates = [
            (producer_id, one)
            for producer_id, known in sorted(self.model.producers.items())
            if producer_id % NEXT_ID not in COORDINATOR
            for one in known.recent
        ]
        if not candidates:
            return
        producer_id, original = rng.choice(candidates)
        known = self.model.producers[producer_id]
        self.say(f"retry sequence {original.sequence} of {producer_id}, which is at {original.base}")
        count = original.last - original.base + 1
        data = build_batch(
            [Record(n, self.now_ms, b"a", b"again") for n in range(count)],
            producer_id=producer_id,
            producer_epoch=original.epoch,
            base_sequence=original.sequence,
            attributes=v2.TRANSACTIONAL_BIT if original.transactional else 0,
        )
        of_this_transaction = 0 <= known.txn_first <= original.last
        try:
            result = self.log.append(data, leader_epoch=self.leader_epoch, now_ms=self.now_ms)
        except ApiError as error:
            if error.code is ErrorCode.UNKNOWN_PRODUCER_ID:
                assert original.transactional and not of_this_transaction
            else:
                assert error.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
                assert self._restarted and original is not known.recent[-1], "the last batch is always known"
            return
        assert not original.transactional or of_this_transaction
        assert (result.duplicate, result.base_offset, result.last_offset) == (True, original.base, original.last)

    # -- chores --

    def roll(self, rng: random.Random) -> None:
        self.say("roll")
        self.log.roll(self.now_ms)

    def flush(self, rng: random.Random) -> None:
        self.say(f"flush up to {self.model.end}")
        self.log.flush()
        assert self.log.recovery_point == self.model.end

    def checkpoint(self, rng: random.Random) -> None:
        self.say("checkpoint")
        self.log.snapshot_producers()
        start = self.log.log_start_offset
        self.checkpoint_files = Checkpoint(
            self.log.recovery_point, start if start > self.log.segments[0].base_offset else 0, self.log.cleaned_offset
        )

    def pass_time(self, rng: random.Random) -> None:
        self.now_ms += rng.choice((1, 500, 1_100, 4_000))
        self.say(f"the clock says {self.now_ms - NOW_MS}")

    def release_idle(self, rng: random.Random) -> None:
        self.say("release idle files")
        for _ in range(2):
            self.log.release_idle()

    def delete_records(self, rng: random.Random) -> None:
        offset = rng.randint(self.model.start, self.model.end)
        self.say(f"delete records below {offset}")
        assert self.log.delete_records(offset) == offset
        self.model.start = offset

    def retention(self, rng: random.Random) -> None:
        self.say("retention")
        candidates = self._first_segments_after_retention()
        self._delete_up_to = candidates[-1]
        self.log.delete_old_segments(self.now_ms)
        self._delete_up_to = 0
        first = self.log.segments[0].base_offset
        assert first in candidates, f"the first segment is {first}, not one of {candidates}"
        self.model.start = max(self.model.start, first)
        self.model.store(one for one in self.model.stored.values() if one.base >= first)

    def _first_segments_after_retention(self) -> list[int]:
        """Where the first segment may begin then, most of it kept first. More than one where a segment is empty: it
        goes by the time of its file."""
        config, model = self.config, self.model
        segments = [(one.base_offset, one.size) for one in self.log.segments]
        bases = [*(base for base, _ in segments), model.end]
        # The active segment goes as well, unless it is empty.
        count, limit = 0, len(segments) if segments[-1][1] else len(segments) - 1
        while count < limit and bases[count + 1] <= model.start:
            count += 1
        if not config.cleanup_delete:
            return [bases[count]]
        excess = sum(size for _, size in segments[count:]) - config.retention_bytes
        while config.retention_bytes >= 0 and count < limit and excess >= segments[count][1]:
            excess -= segments[count][1]
            count += 1
        found = [count]
        while config.retention_ms >= 0 and count < limit:
            inside = range(bases[count], bases[count + 1])
            latest = max((one.max_timestamp for one in model.stored.values() if one.base in inside), default=None)
            if latest is not None and self.now_ms - latest <= config.retention_ms:
                break
            count += 1
            found = [*found, count] if latest is None or len(found) > 1 else [count]
        return [bases[one] for one in found]

    def compact(self, rng: random.Random) -> None:
        log = self.log
        if not self.config.cleanup_compact:
            return
        log.flush()  # as the broker: what is removed rests on batches and markers that no power cut may take
        cleanable = survey(log, self.now_ms)
        if cleanable.upper_offset <= cleanable.first_dirty_offset:
            return
        # As the broker, too: the gaps are below the recovery point that a start reads.
        self.checkpoint_files = replace(self.checkpoint_files, recovery_point=log.recovery_point)
        map_bytes = rng.choice((1, 1_500, 1 << 20))
        job = make_job(cleanable, self.now_ms, self.now_ms, map_bytes_max=map_bytes)
        self.say(f"compact {job.first_dirty_offset} to {job.upper_offset} with a map of {map_bytes} bytes")
        self._compacting = (job.first_dirty_offset, job.upper_offset)
        result = run_round(log, job, synced=True)
        self._compacting = None
        assert result.end_offset > job.first_dirty_offset
        after = {one.base: one for one in self._stored()}
        self.model.check_compaction(after, job.first_dirty_offset, result.end_offset, self.now_ms, done=True)
        self.model.store(after.values())
        if rng.random() < 0.7:  # written in the background
            self.checkpoint_files = replace(self.checkpoint_files, cleaned=log.cleaned_offset)

    # -- stops --

    def restart(self, rng: random.Random) -> None:
        self.say("clean restart")
        self._stop()
        self._start_clean()

    def power_off(self, rng: random.Random) -> None:
        self.say("clean stop, then a power cut")
        self._stop()
        self.disk = self.disk.cut(self._folder / f"{self._cuts}-off-{rng.randrange(1 << 30)}", rng)
        self._start_clean()

    def _stop(self) -> None:
        start, cleaned = self.log.log_start_offset, self.log.cleaned_offset
        first = self.log.segments[0].base_offset
        self.log.close()
        self.checkpoint_files = Checkpoint(self.model.end, start if start > first else 0, cleaned)

    def _start_clean(self) -> None:
        self.log = self._load(clean=True)
        self._restarted = True
        first = self.log.segments[0].base_offset
        self._let_deleted_segments_return(first)
        self.model.start = max(self.checkpoint_files.log_start, first)

    def _let_deleted_segments_return(self, first: int) -> None:
        """The names of deleted files go when the folder is synced: a power cut may bring them back."""
        found = self._stored()
        for one in found:
            if one.base not in self.model.stored:
                assert one in self.model.forms.get(one.base, ()), f"{one} was never there"
                assert one.base < min(self.model.stored, default=self.model.end), f"{one} is back"
        kept = {one.base: one for one in found}
        assert all(kept.get(base) == one for base, one in self.model.stored.items())
        self.model.store(found)

    def kill(self, rng: random.Random) -> None:
        self.say("kill -9")
        self._recover(power=False)

    def power_cut(self, rng: random.Random) -> None:
        self._cut_power(rng)

    def _cut_power(self, rng: random.Random) -> None:
        self.say("power cut")
        self.disk = self.disk.cut(self._folder / f"{self._cuts}-cut-{rng.randrange(1 << 30)}", rng)
        self._recover(power=True)

    def crash_during(self, action: Callable[[random.Random], None], rng: random.Random) -> None:
        """The process dies, or loses its power, before some step of the action, if the action has that many."""
        self.disk.crash_in(rng.choice((0, 1, 2, 3, 5, 8, 13)))
        try:
            action(rng)
        except Crash:
            self.disk.crash_in(None)
            self.say("... and dies in the middle of it")
            if rng.random() < 0.5:
                self._cut_power(rng)
            else:
                self.kill(rng)
        finally:
            self.disk.crash_in(None)
