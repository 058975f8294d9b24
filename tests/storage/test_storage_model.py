"""Random histories of one log against a model in plain Python, with kills and power cuts at any step.

A failure says its seed and a short transcript; `python -m tests.storage.model.run SEED` plays it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from ottla.records import batch as v2
from ottla.storage.compaction import compactor
from ottla.storage.loading import log_loader
from ottla.storage.loading.recovery import Recovery
from ottla.storage.segments.batch_scan import BrokenChain, Trail, scan_batches
from ottla.storage.segments.segment import Segment
from tests.storage.model.run import check_seed, play, steps_of

SEEDS = 200
SEEDS_IN_ALL = 20_000
SEEDS_PER_TEST = 500


@pytest.mark.parametrize("first", range(0, SEEDS, 50))
def test_a_log_does_what_the_model_says(first: int) -> None:
    for seed in range(first, first + 50):
        check_seed(seed)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("first", range(0, SEEDS_IN_ALL, SEEDS_PER_TEST))
def test_a_log_does_what_the_model_says_for_long(first: int) -> None:
    for seed in range(first, first + SEEDS_PER_TEST):
        check_seed(seed)


def trusts_any_snapshot(patch: pytest.MonkeyPatch) -> None:
    """Recovery begins with the newest snapshot, and trusts the index of aborted transactions below it."""
    patch.setattr(log_loader, "_last_trusted", lambda segments, recovery_point: 1 << 62)


def forgets_to_sync_aborted_transactions(patch: pytest.MonkeyPatch) -> None:
    """A segment that is finished counts as synced."""
    finish = Segment.finish

    def finish_as_if_synced(segment: Segment) -> None:
        finish(segment)
        segment.txns.unsynced = False

    patch.setattr(Segment, "finish", finish_as_if_synced)


def remembers_old_aborts(patch: pytest.MonkeyPatch) -> None:
    """The map pass of compaction hears of aborted transactions whose markers it does not see."""
    walk = compactor._Round._walk_transactions
    patch.setattr(compactor._Round, "_walk_transactions", lambda self, start=0: walk(self, 0))


def keeps_holes(patch: pytest.MonkeyPatch) -> None:
    """Recovery steps over a batch that is not whole when whole ones follow."""

    def batches(self: Recovery, segment: Segment, position: int, end: int) -> Iterator[tuple[int, v2.BatchHeader]]:
        fd, trail = segment.file().fd, Trail(segment.base_offset)
        found: int | None = position
        while found is not None and found < end:
            try:
                for at, header in scan_batches(fd, found, end, trail.previous):
                    yield at, header
                    trail.passed(at, header.last_offset)
                return
            except BrokenChain as broken:
                found = trail.resume(fd, broken.position, end)

    patch.setattr(Recovery, "_whole_batches", batches)


@pytest.mark.parametrize(
    ("put_back", "first"),
    [
        (trusts_any_snapshot, 0),
        (forgets_to_sync_aborted_transactions, 0),
        (remembers_old_aborts, 400),  # one history in 400 shows it
        (keeps_holes, 0),
    ],
)
def test_a_defect_that_is_put_back_is_found(
    monkeypatch: pytest.MonkeyPatch, put_back: Callable[[pytest.MonkeyPatch], None], first: int
) -> None:
    put_back(monkeypatch)
    found = any(play(seed, steps_of(seed)) for seed in range(first, first + 2000))
    assert found, f"nobody noticed: {put_back.__doc__}"
