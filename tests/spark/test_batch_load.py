"""Which batches are small: no Spark is needed to tell."""

from __future__ import annotations

from ottla.spark.sink.load import SMALL_BYTES, Load
from ottla.spark.sink.marker import Marker


def _after(*batches: tuple[int, int], is_bound_to_input: bool = True) -> Load:
    """A query whose batches had so many records and came to so many bytes."""
    load = Load(is_bound_to_input=is_bound_to_input)
    for records, size in batches:
        load.is_small(records)
        load.note(records, size)
    return load


def test_a_batch_is_small_if_it_would_come_to_little() -> None:
    load = _after((100, 10_000))
    assert load.is_small(SMALL_BYTES // 100)
    assert not load.is_small(SMALL_BYTES // 100 + 1)


def test_nothing_is_known_before_the_first_batch_or_of_other_sources() -> None:
    assert not Load().is_small(1)
    assert not _after((100, 10_000)).is_small(None)
    assert not _after((0, 0)).is_small(1)


def test_what_was_large_once_is_not_small_after_a_batch_that_gave_nothing() -> None:
    assert not _after((100, SMALL_BYTES), (100, 0)).is_small(200)
    assert _after((100, SMALL_BYTES), *[(100, 0)] * 50).is_small(200)


def test_a_query_that_writes_its_whole_state_has_no_small_batches() -> None:
    assert not _after((100, 10), is_bound_to_input=False).is_small(1)


def test_records_between_markers() -> None:
    before = Marker("q", 1, {"a": {"0": 10, "1": 5}})
    assert Marker("q", 2, {"a": {"0": 12, "1": 5}, "b": {"0": 3}}).records_since(before) == 5
