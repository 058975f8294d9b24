"""Values sorted into buckets, one at a time or many at once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ottla.exposition.histogram import Histogram

BOUNDS = (1.0, 2.0, 5.0)
_values = st.lists(st.floats(0, 10) | st.sampled_from(BOUNDS))


@given(_values)
def test_many_at_once_are_as_one_after_the_other(values: list[float]) -> None:
    one_by_one, at_once = Histogram(BOUNDS), Histogram(BOUNDS)
    for value in values:
        one_by_one.add(value)
    at_once.add_all(sorted(values))
    assert at_once.counts == one_by_one.counts
    assert abs(at_once.sum - one_by_one.sum) < 1e-6


def test_a_value_at_a_bound_is_below_it() -> None:
    histogram = Histogram(BOUNDS)
    histogram.add_all([2.0])
    assert histogram.buckets() == [("1.0", 0), ("2.0", 1), ("5.0", 1), ("+Inf", 1)]


def test_values_of_zero_that_were_not_added_are_in_every_bucket() -> None:
    histogram = Histogram(BOUNDS)
    histogram.add(3.0)
    assert histogram.buckets(zeros=4) == [("1.0", 4), ("2.0", 4), ("5.0", 5), ("+Inf", 5)]
