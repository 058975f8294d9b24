"""Stores keep what they are given, in order, for as long as they retain it; changelogs bring it back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.streams import serdes, session_store, window_store
from ottla.streams.dsl.builder import StreamsBuilder
from ottla.streams.engine.changelogs import apply_record, to_records
from ottla.streams.engine.overlay import OverlayBytes
from ottla.streams.engine.partitions import plan_partitions
from ottla.streams.state import ordered_keys
from ottla.streams.state.bytes_store import MemoryBytes
from ottla.streams.windows import Window, Windowed

KEYS = st.binary(max_size=3)
CHANGES = st.lists(st.tuples(KEYS, st.one_of(st.none(), st.binary(max_size=2))), max_size=30)


@given(CHANGES, CHANGES, KEYS, st.one_of(st.none(), KEYS))
def test_changes_over_a_store_are_seen_and_count_only_when_applied(
    first: list[tuple[bytes, bytes | None]],
    second: list[tuple[bytes, bytes | None]],
    low: bytes,
    high: bytes | None,
) -> None:
    base, model = MemoryBytes(), {}
    for key, value in first:
        base.put(key, value)
        model[key] = value
    before = list(base.range(b"", None))
    overlay = OverlayBytes(base)
    for key, value in second:
        overlay.put(key, value)
        model[key] = value
    there = sorted((key, value) for key, value in model.items() if value is not None)
    wanted = [entry for entry in there if entry[0] >= low and (high is None or entry[0] <= high)]
    assert list(overlay.range(low, high)) == wanted
    assert list(overlay.range(low, high, reverse=True)) == wanted[::-1]
    assert len(overlay) == len(there)
    assert list(base.range(b"", None)) == before
    overlay.apply()
    assert list(base.range(b"", None)) == there


@given(CHANGES, KEYS, st.one_of(st.none(), KEYS), st.integers(1, 4))
def test_keys_in_order_are_those_of_a_sorted_list_however_they_are_cut(
    changes: list[tuple[bytes, bytes | None]], low: bytes, high: bytes | None, chunk: int
) -> None:
    before, ordered_keys._CHUNK = ordered_keys._CHUNK, chunk
    try:
        keys, model = ordered_keys.OrderedKeys([]), set()
        for key, value in changes:
            if value is not None and key not in model:
                keys.add(key)
                model.add(key)
            elif value is None and key in model:
                keys.remove(key)
                model.discard(key)
        there = sorted(model)
        assert keys.between(low, high) == [each for each in there if each >= low and (high is None or each <= high)]
        assert list(keys.following(low)) == [each for each in there if each >= low]
        assert list(ordered_keys.OrderedKeys(model).following(b"")) == there
    finally:
        ordered_keys._CHUNK = before


def test_a_window_store_forgets_what_is_older_than_its_retention() -> None:
    spec = window_store("w", retention_ms=20, window_size_ms=10, key=serdes.string)
    data = MemoryBytes()
    store = spec.open(data)
    for start in (0, 10, 20, 30):
        store.put("k", start, start)
    assert [start for start, _ in store.fetch("k", 0, 100)] == [20, 30]
    store.forget_old()
    assert len(data) == 4


@pytest.mark.parametrize("duplicates", [False, True])
def test_a_window_store_comes_back_from_its_changelog(duplicates: bool) -> None:
    spec = window_store("w", retention_ms=99, window_size_ms=10, key=serdes.string, retain_duplicates=duplicates)
    overlay = OverlayBytes(MemoryBytes())
    store = spec.open(overlay)
    for key, start in (("k", 0), ("kk", 10), ("k", 10), ("k", 10)):
        store.put(key, f"{key}{start}", start, start + 3)
    again = MemoryBytes()
    for record in to_records(spec, overlay.changes(), 0):
        apply_record(spec, again, *record)
    assert list(again.range(b"", None)) == list(overlay.range(b"", None))


def test_a_session_store_comes_back_from_its_changelog() -> None:
    spec = session_store("s", retention_ms=99, key=serdes.string)
    overlay = OverlayBytes(MemoryBytes())
    store = spec.open(overlay)
    store.put(Windowed("k", Window(0, 5)), 1)
    store.put(Windowed("k", Window(7, 9)), 2)
    store.remove(Windowed("k", Window(0, 5)))
    again = MemoryBytes()
    for record in to_records(spec, overlay.changes(), 0):
        apply_record(spec, again, *record)
    assert list(spec.open(again).fetch("k")) == [(Windowed("k", Window(7, 9)), 2)]


def test_a_repartition_topic_has_as_many_partitions_as_what_it_is_joined_with() -> None:
    builder = StreamsBuilder()
    orders = builder.stream("orders").select_key(lambda key, order: order["customer"])
    orders.join(builder.table("customers"), lambda order, customer: order, name="enriched").to("out")
    assert plan_partitions(builder.build(), {"orders": 3, "customers": 5})["enriched-repartition"] == 5
