"""Room for the changes that free room."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from ottla.metastore import reserve as module
from ottla.metastore.reserve import FILE_NAME, Reserve

MIB = 1 << 20


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """What statvfs says; sizes in blocks of a byte."""
    found = SimpleNamespace(f_frsize=1, f_blocks=1 << 30, f_bavail=1 << 29)
    monkeypatch.setattr(module.os, "statvfs", lambda path: found)
    return found


def test_it_holds_real_room_and_is_given_up_piece_by_piece(tmp_path: Path, disk: SimpleNamespace) -> None:
    reserve = Reserve(tmp_path)
    assert not reserve.release()
    reserve.keep()
    reserve.keep()
    assert os.stat(tmp_path / FILE_NAME).st_blocks * 512 >= MIB
    sizes = []
    while reserve.release():
        sizes.append((tmp_path / FILE_NAME).stat().st_size)
    assert sizes == [MIB * 3 // 4, MIB // 2, MIB // 4, 0]
    reserve.keep()
    assert (tmp_path / FILE_NAME).stat().st_size == MIB


def test_it_takes_no_room_that_others_need(tmp_path: Path, disk: SimpleNamespace) -> None:
    disk.f_bavail = 4 * MIB
    Reserve(tmp_path).keep()
    assert not (tmp_path / FILE_NAME).exists()


def test_it_is_small_on_a_small_disk(tmp_path: Path, disk: SimpleNamespace) -> None:
    disk.f_blocks, disk.f_bavail = 8 * MIB, 4 * MIB
    Reserve(tmp_path).keep()
    assert (tmp_path / FILE_NAME).stat().st_size == MIB // 8
