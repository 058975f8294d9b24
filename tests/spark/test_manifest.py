"""The manifest of a batch: what is written down, when, and what a batch that runs again does with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from ottla.common.errors import OttlaError
from ottla.spark.sink.checkpoint import Checkpoint
from ottla.spark.sink.manifest import _KEPT, Manifest, Manifests, TableEnd
from ottla.spark.sink.marker import Marker

FIRST = Manifest({"out": 2}, {"customers": TableEnd("id", {"0": 5})})
SECOND = Manifest({"out": 2}, {"customers": TableEnd("id", {"0": 9, "1": 3})})


def manifests(folder: Path) -> Manifests:
    """Without Spark, which is asked only where a checkpoint is."""
    checkpoint = Checkpoint(cast(Any, None), str(folder))
    vars(checkpoint)["local"] = folder
    return Manifests(checkpoint)


def test_a_manifest_holds_until_there_is_another_one(tmp_path: Path) -> None:
    here = manifests(tmp_path)
    here.write(0, FIRST)
    here.write(1, FIRST)
    here.write(4, SECOND)
    for one in (here, manifests(tmp_path)):
        assert [one.holding(batch) for batch in range(6)] == [FIRST] * 4 + [SECOND] * 2
        assert one.holding(-1) == Manifest()
    assert sorted(path.name for path in (tmp_path / "ottla" / "manifests").iterdir()) == ["0", "4"]


def test_old_manifests_are_removed_and_the_one_that_holds_stays(tmp_path: Path) -> None:
    here = manifests(tmp_path)
    for batch in range(3 * _KEPT):
        here.write(batch, Manifest({"out": batch + 1}))
    assert len(list((tmp_path / "ottla" / "manifests").iterdir())) == _KEPT
    assert manifests(tmp_path).holding(1000) == Manifest({"out": 3 * _KEPT})


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"version": 2}', '{"version":1,"tables":{"a":{}}}'])
def test_a_damaged_manifest_is_told_of_in_one_sentence(tmp_path: Path, text: str) -> None:
    manifests(tmp_path).write(3, FIRST)
    (tmp_path / "ottla" / "manifests" / "3").write_text(text)
    with pytest.raises(OttlaError, match=r"the manifest .*/3 cannot be read \(.*\): it is damaged, or of a later"):
        manifests(tmp_path).holding(3)


def test_a_checkpoint_elsewhere_has_manifests_too(spark: Any, tmp_path: Path) -> None:
    """Through Spark's own way to write checkpoints: for it a local folder is as good as any."""
    checkpoint = Checkpoint(spark, f"file://{tmp_path}/elsewhere")
    vars(checkpoint)["local"] = None
    here = Manifests(checkpoint)
    assert here.holding(7) == Manifest()
    for batch in range(_KEPT + 1):
        here.write(batch, Manifest({"out": batch}))
    here.write(_KEPT, FIRST)
    assert Manifests(checkpoint).holding(_KEPT) == FIRST
    assert sorted(checkpoint.numbers("ottla/manifests")) == list(range(1, _KEPT + 1))


def test_a_marker_is_of_the_same_size_for_any_number_of_partitions() -> None:
    few, many = ({"in": {str(one): one for one in range(count)}} for count in (1, 1_000))
    assert len(Marker("id", 1, few).to_json()) == len(Marker("id", 1, many).to_json())
    assert Marker.from_json(Marker("id", 1, many).to_json()) == Marker("id", 1, many) != Marker("id", 1, few)
    older = '{"query":"id","batch":1,"offsets":{"in":{"0":0}}}'
    assert Marker.from_json(older) == Marker("id", 1, few)
