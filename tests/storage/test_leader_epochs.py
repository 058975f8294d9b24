"""Leader epochs: where they began, where they ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.storage.leader_epochs import LeaderEpochs
from ottla.storage.log_config import LogConfig
from ottla.storage.log_dirs.checkpoints import LEADER_EPOCHS
from tests.storage.batches import NOW_MS, batch, open_log


@pytest.fixture
def epochs(tmp_path: Path) -> LeaderEpochs:
    made = LeaderEpochs(tmp_path / "leader-epoch-checkpoint")
    for epoch, start in ((2, 10), (4, 20), (5, 30)):
        made.assign(epoch, start)
    return made


def test_an_epoch_ends_where_the_next_begins(epochs: LeaderEpochs) -> None:
    assert epochs.end_offset_for(5, 99) == (5, 99)
    assert epochs.end_offset_for(4, 99) == (4, 30)
    assert epochs.end_offset_for(2, 99) == (2, 20)


def test_an_epoch_that_never_was_gives_the_one_below(epochs: LeaderEpochs) -> None:
    assert epochs.end_offset_for(3, 99) == (2, 20)
    assert epochs.end_offset_for(1, 99) == (1, 10)
    assert epochs.end_offset_for(6, 99) == (-1, -1)
    assert epochs.end_offset_for(-1, 99) == (-1, -1)


def test_the_epoch_of_an_offset(epochs: LeaderEpochs) -> None:
    assert [epochs.epoch_for(offset) for offset in (9, 10, 19, 20, 1000)] == [-1, 2, 2, 4, 5]


def test_a_new_epoch_drops_what_contradicts_it(epochs: LeaderEpochs) -> None:
    epochs.assign(6, 25)
    assert epochs.entries == [(2, 10), (4, 20), (6, 25)]
    epochs.assign(6, 40)
    assert epochs.entries == [(2, 10), (4, 20), (6, 25)]


def test_an_epoch_without_records_is_replaced(epochs: LeaderEpochs) -> None:
    epochs.assign(7, 30)
    assert epochs.entries == [(2, 10), (4, 20), (7, 30)]


def test_truncation_from_both_ends(epochs: LeaderEpochs) -> None:
    epochs.truncate_from_end(30)
    assert epochs.entries == [(2, 10), (4, 20)]
    epochs.truncate_from_start(15)
    assert epochs.entries == [(2, 15), (4, 20)]
    epochs.truncate_from_start(20)
    assert epochs.entries == [(4, 20)]


def test_the_file_is_kafkas(epochs: LeaderEpochs, tmp_path: Path) -> None:
    path = epochs.save()
    assert path.read_text() == "0\n3\n2 10\n4 20\n5 30\n"
    assert LeaderEpochs(path).entries == [(2, 10), (4, 20), (5, 30)]
    for damaged in ("", "0\n2\n1 1\n", "1\n0\n", "0\n1\nx y\n", "0\n2\n5 5\n4 9\n"):
        path.write_text(damaged)
        assert LeaderEpochs(path).entries == []


@pytest.mark.parametrize("content", [None, "", "0\n1\nx y\n"], ids=["gone", "empty", "damaged"])
@pytest.mark.parametrize(("clean", "recovery_point"), [(True, 14), (False, 14), (False, 7), (False, 0)])
def test_what_the_file_does_not_tell_the_batches_do(
    tmp_path: Path, content: str | None, clean: bool, recovery_point: int
) -> None:
    """Or a replica whose log went another way would never be told, and one that asks its leader hears of no end."""
    log = open_log(tmp_path, LogConfig(segment_bytes=500))
    for epoch in (0, 0, 1, 3, 3, 3, 4):
        log.append(batch(b"a", b"b"), leader_epoch=epoch, now_ms=NOW_MS)
    expected = log.leader_epochs.entries
    log.close()
    path = tmp_path / LEADER_EPOCHS
    path.unlink()
    if content is not None:
        path.write_text(content)
    again = open_log(tmp_path, LogConfig(segment_bytes=500), clean=clean, recovery_point=recovery_point)
    assert again.leader_epochs.entries == expected
    assert again.leader_epochs.end_offset_for(1, 14) == (1, 6)
    again.close()
    assert LeaderEpochs(path).entries == expected


@pytest.mark.parametrize("clean", [True, False])
def test_a_log_whose_batches_tell_of_no_epoch_is_asked_once(
    tmp_path: Path, clean: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Or each start would read all of it."""
    log = open_log(tmp_path)
    log.append(batch(b"a"), leader_epoch=-1, now_ms=NOW_MS)
    log.close()
    (tmp_path / LEADER_EPOCHS).unlink(missing_ok=True)
    for _ in range(3):
        again = open_log(tmp_path, clean=clean, recovery_point=1)
        assert again.leader_epochs.entries == []
    assert caplog.text.count("the batches are asked") == 1


@pytest.mark.parametrize("clean", [True, False])
def test_epochs_follow_the_log(tmp_path: Path, clean: bool) -> None:
    log = open_log(tmp_path, LogConfig(segment_bytes=500))
    for epoch in (0, 0, 1, 3, 3, 3, 4):
        log.append(batch(b"a", b"b"), leader_epoch=epoch, now_ms=NOW_MS)
    expected = [(0, 0), (1, 4), (3, 6), (4, 12)]
    assert log.leader_epochs.entries == expected
    if clean:
        log.close()
    again = open_log(tmp_path, LogConfig(segment_bytes=500), clean=clean)
    assert again.leader_epochs.entries == expected
    again.truncate_to(12, NOW_MS)
    assert again.leader_epochs.entries == expected[:3]
    again.leader_epochs.assign(9, 12)
    again.truncate_to(12, NOW_MS)
    assert again.leader_epochs.entries == expected[:3]
    again.high_watermark = 12
    again.delete_records(5)
    assert again.leader_epochs.entries == [(1, 5), (3, 6)]
