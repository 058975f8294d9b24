"""What stands in Spark's checkpoint about a source."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("pyspark")

from ottla.common.ids import TopicId, TopicPartition, topic_id_text
from ottla.spark.source.offsets import SourceOffset, from_json, to_json

FIRST, SECOND = TopicId(b"1" * 16), TopicId(b"2" * 16)
A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def test_offsets_have_one_text() -> None:
    offset = SourceOffset(
        {TopicPartition("b", 10): 1, TopicPartition("b", 9): 2, A0: 3},
        {"b": SECOND, "a": FIRST},
        {TopicPartition("b", 10): 5, TopicPartition("b", 9): 4},
    )
    assert json.dumps(to_json(offset)) == (
        f'{{"a": {{"0": 3, "id": "{topic_id_text(FIRST)}"}}, '
        f'"b": {{"9": 2, "10": 1, "id": "{topic_id_text(SECOND)}", "epochs": {{"9": 4, "10": 5}}}}}}'
    )
    assert from_json(to_json(offset)) == offset
    assert from_json(None) == SourceOffset()


def test_a_checkpoint_without_ids_is_read_and_written_as_it_was_until_something_moves() -> None:
    old = from_json({"a": {"0": 3, "1": 4}, "b": {"0": 5}})
    seen = SourceOffset({A0: 3, A1: 4, B0: 5}, {"a": FIRST, "b": SECOND}, {A0: 7, A1: 7, B0: 7})
    assert old.replaced_by(seen) == set()
    assert old.moved_to(seen.offsets, seen) == old
    further = old.moved_to({A0: 3, A1: 6, B0: 5}, seen)
    assert to_json(further) == {
        "a": {"0": 3, "1": 6, "id": topic_id_text(FIRST), "epochs": {"1": 7}},
        "b": {"0": 5},
    }


def test_an_epoch_that_changes_alone_is_nothing_new() -> None:
    before = SourceOffset({A0: 3}, {"a": FIRST}, {A0: 1})
    seen = SourceOffset({A0: 3}, {"a": FIRST}, {A0: 2})
    assert before.moved_to({A0: 3}, seen) == before


def test_another_topic_of_the_same_name_is_something_new_at_the_same_offset() -> None:
    before = SourceOffset({A0: 3}, {"a": FIRST}, {A0: 1})
    seen = SourceOffset({A0: 3}, {"a": SECOND}, {A0: 1})
    assert before.replaced_by(seen) == {"a"}
    assert before.moved_to({A0: 3}, seen) == seen
