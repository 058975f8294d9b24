"""Values sorted into buckets, one at a time or many at once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from ottla.exposition.families import histograms
from ottla.exposition.histogram import Histogram
from ottla.exposition.histogram_text import histogram_text
from ottla.exposition.text import text_of

BOUNDS = (1.0, 2.0, 5.0)
_value = st.floats(0, 10) | st.sampled_from(BOUNDS)
_values = st.lists(_value)


@given(_values)
def test_many_at_once_are_as_one_after_the_other(values: list[float]) -> None:
    one_by_one, at_once = Histogram(BOUNDS), Histogram(BOUNDS)
    for value in values:
        one_by_one.add(value)
    at_once.add_all(sorted(values))
    assert at_once.counts == one_by_one.counts
    assert abs(at_once.sum - one_by_one.sum) < 1e-6


@given(st.lists(st.tuples(_value, st.integers(0, 5))))
def test_values_that_came_several_times_are_as_one_after_the_other(told: list[tuple[float, int]]) -> None:
    one_by_one, at_once = Histogram(BOUNDS), Histogram(BOUNDS)
    for value, times in told:
        for _ in range(times):
            one_by_one.add(value)
    at_once.add_each([value for value, _ in told], [times for _, times in told])
    assert at_once.counts == one_by_one.counts
    assert abs(at_once.sum - one_by_one.sum) < 1e-6


def test_a_value_at_a_bound_is_below_it() -> None:
    histogram = Histogram(BOUNDS)
    histogram.add(2.0)
    assert histogram.buckets() == [("1.0", 0), ("2.0", 1), ("5.0", 1), ("+Inf", 1)]


def test_values_of_zero_that_were_not_added_are_in_every_bucket() -> None:
    histogram = Histogram(BOUNDS)
    histogram.add(3.0)
    assert histogram.buckets(zeros=4) == [("1.0", 4), ("2.0", 4), ("5.0", 5), ("+Inf", 5)]


@given(st.lists(st.tuples(st.text(max_size=8), _values, st.integers(0, 3)), max_size=4, unique_by=lambda one: one[0]))
def test_the_text_says_what_prometheus_client_would(told: list[tuple[str, list[float], int]]) -> None:
    rows = []
    for name, values, zeros in told:
        histogram = Histogram(BOUNDS)
        for value in values:
            histogram.add(value)
        rows.append(((name,), histogram, zeros))
    ours = histogram_text("times", "Some times.", ["who"], rows, scale=1_000)
    theirs = text_of([histograms("times", "Some times.", ["who"], rows, scale=1_000)])

    def parsed(text: bytes) -> list[tuple[object, ...]]:
        return sorted(
            (sample.name, sorted(sample.labels.items()), sample.value)
            for family in text_string_to_metric_families(text.decode())
            for sample in family.samples
        )

    assert parsed(ours) == parsed(theirs)
