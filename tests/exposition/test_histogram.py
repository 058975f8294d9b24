"""Values sorted into buckets, here or elsewhere."""

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


@given(_values, _values)
def test_what_was_counted_elsewhere_is_as_if_it_had_been_counted_here(
    here: list[float], elsewhere: list[float]
) -> None:
    both, first, second = Histogram(BOUNDS), Histogram(BOUNDS), Histogram(BOUNDS)
    for value in (*here, *elsewhere):
        both.add(value)
    for histogram, values in ((first, here), (second, elsewhere)):
        for value in values:
            histogram.add(value)
    first.merge(second.counts, second.sum)
    assert first.counts == both.counts
    assert abs(first.sum - both.sum) < 1e-6


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
