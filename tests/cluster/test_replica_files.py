"""Replicas that differ are found out: the check itself, on files made by hand."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from tests.cluster.replica_files import batches, differences


def batch(base_offset: int, content: bytes, epoch: int = 1) -> bytes:
    body = struct.pack(">i", epoch) + content
    return struct.pack(">qi", base_offset, len(body)) + body


def replica(folder: Path, *segments: bytes) -> Path:
    folder.mkdir(parents=True)
    for number, segment in enumerate(segments):
        (folder / f"{number:020}.log").write_bytes(segment)
    return folder


WHOLE = [batch(0, b"a"), batch(1, b"b"), batch(2, b"c")]


def test_the_same_batches_in_other_segments_are_the_same(tmp_path: Path) -> None:
    one = replica(tmp_path / "1" / "t-0", b"".join(WHOLE))
    other = replica(tmp_path / "2" / "t-0", WHOLE[0], WHOLE[1] + WHOLE[2])
    assert list(batches(one)) == [0, 1, 2]
    assert differences({1: one, 2: other}, below=3) == []


@pytest.mark.parametrize(
    "log",
    [
        [WHOLE[0], batch(1, b"B"), WHOLE[2]],
        [WHOLE[0], batch(1, b"b", epoch=2), WHOLE[2]],
        [WHOLE[0], WHOLE[2]],
        [WHOLE[0], WHOLE[1]],
        [WHOLE[0], WHOLE[1], WHOLE[2][:-1]],
    ],
    ids=["another value", "another epoch", "a gap", "an end too early", "a torn end"],
)
def test_a_difference_below_the_watermark_is_found(tmp_path: Path, log: list[bytes]) -> None:
    one = replica(tmp_path / "1" / "t-0", b"".join(WHOLE))
    other = replica(tmp_path / "2" / "t-0", b"".join(log))
    assert len(differences({1: one, 2: other}, below=3)) == 1


def test_what_is_above_the_watermark_may_differ(tmp_path: Path) -> None:
    one = replica(tmp_path / "1" / "t-0", b"".join(WHOLE))
    other = replica(tmp_path / "2" / "t-0", b"".join([*WHOLE[:2], batch(2, b"not committed")]))
    assert differences({1: one, 2: other}, below=2) == []
