"""Which batch has the bad records of a table: each is a dead letter once, whatever is changed between two starts."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from ottla.spark.pipeline.tables import collection
from ottla.spark.pipeline.tables.collection import Tables
from ottla.spark.pipeline.tables.walked import BadRecords
from ottla.spark.sink.manifest import Manifests, TableEnd
from tests.spark.test_manifest import manifests


@dataclass
class Topic:
    """A table whose records are all bad: they are their offsets."""

    topic: str
    end: int = 0
    _at: int = field(default=0, init=False)

    def end_now(self) -> TableEnd:
        return TableEnd("id", {"0": self.end})

    def end_again(self, end: TableEnd) -> TableEnd:
        return end

    def follow(self, end: TableEnd) -> None:
        self._at = end.ends["0"]

    def bad_records(self, before: TableEnd | None) -> list[BadRecords]:
        new: Any = [f"{self.topic} {offset}" for offset in range(0 if before is None else before.ends["0"], self._at)]
        return [BadRecords(new, len(new))] if new else []

    def close(self) -> None:
        pass


class Query:
    """What the sink does, without Spark: batches that began are in its log, and those that ended."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder = folder
        self.begun = -1
        self.ended = -1
        monkeypatch.setattr(collection, "dead_letters", lambda frame, *about: frame)

    def newest_batch(self) -> int | None:
        return self.begun if self.begun >= 0 else None

    def unfinished_batch(self) -> int | None:
        return self.begun if self.begun > self.ended else None

    def start(self, *topics: Topic) -> Tables:
        none: Any = None
        tables = Tables(none, "orders", "letters")
        its: Any = list(topics)
        tables._tables = its
        checkpoint: Any = self
        here: Manifests = manifests(self._folder)
        tables.open(checkpoint, here, lambda error: None)
        return tables

    def batch(self, tables: Tables, *, ends: bool = True) -> list[str]:
        """The dead letters of the next batch, or of the one that did not end."""
        if self.begun == self.ended:
            tables._before_batch()
            self.begun += 1
        letters = [letter for frame in tables.dead_letters(self.begun) for letter in frame]  # type: ignore[attr-defined]
        if ends:
            self.ended = self.begun
            tables.batch_done()
        return letters


@pytest.fixture
def query(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Query:
    return Query(tmp_path, monkeypatch)


def test_a_batch_has_the_bad_records_that_it_is_the_first_to_see(query: Query) -> None:
    people = Topic("people", end=2)
    tables = query.start(people)
    assert query.batch(tables) == ["people 0", "people 1"]
    assert query.batch(tables) == []
    people.end = 3
    assert query.batch(tables) == ["people 2"]


def test_a_batch_that_runs_again_has_the_same(query: Query) -> None:
    people = Topic("people", end=2)
    tables = query.start(people)
    assert query.batch(tables, ends=False) == ["people 0", "people 1"]
    people.end = 5
    tables = query.start(people)
    assert query.batch(tables) == ["people 0", "people 1"]
    assert query.batch(tables) == ["people 2", "people 3", "people 4"]


@pytest.mark.parametrize("starts", [1, 2])
def test_a_table_that_is_new_when_a_batch_runs_again_has_its_bad_records_in_the_one_after(
    query: Query, starts: int
) -> None:
    """The batch may have been published before the pipeline had this table: then nobody publishes anything with it."""
    people, goods = Topic("people", end=1), Topic("goods", end=2)
    assert query.batch(query.start(people), ends=False) == ["people 0"]
    for _ in range(starts):
        tables = query.start(people, goods)
        goods.end += 1
        assert query.batch(tables, ends=False) == ["people 0"]
    assert query.batch(tables) == ["people 0"]
    assert query.batch(tables) == [f"goods {offset}" for offset in range(goods.end)]
    assert query.batch(tables) == []
