"""The journal of a search: it goes on where it was ended, and never mixes what different code has played."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.common.errors import OttlaError
from ottla.testing.simulation import __main__ as command
from ottla.testing.simulation.__main__ import Summary
from ottla.testing.simulation.journal import Journal, Played, code_in_use


def test_what_was_noted_is_there_the_next_time(tmp_path: Path) -> None:
    with Journal(tmp_path / "seeds", "code") as journal:
        journal.note(0, Played(0.25, None))
        journal.note(1, Played(0.5, "acknowledged record lost: c1\nand a trace"))
    with Journal(tmp_path / "seeds", "code") as journal:
        assert journal.played == {0: Played(0.25, None), 1: Played(0.5, "acknowledged record lost: c1")}


def test_a_journal_of_other_code_is_refused(tmp_path: Path) -> None:
    with Journal(tmp_path / "seeds", "code"):
        pass
    with pytest.raises(OttlaError, match="Begin a new journal"):
        Journal(tmp_path / "seeds", "other code")


def test_a_line_that_was_not_written_to_its_end_does_not_count(tmp_path: Path) -> None:
    path = tmp_path / "seeds"
    with Journal(path, "code") as journal:
        journal.note(0, Played(0.25, None))
    with path.open("a") as file:
        file.write("1 0.2")
    with Journal(path, "code") as journal:
        assert list(journal.played) == [0]
        journal.note(1, Played(0.5, None))
    assert path.read_text().splitlines() == ["code code", "0 0.250 ok", "1 0.500 ok"]


def test_the_name_of_the_code_changes_with_what_is_loaded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = code_in_use()
    assert before == code_in_use()
    other = tmp_path / "other.py"
    other.write_text("# another\n")
    monkeypatch.setattr(command, "__file__", str(other))
    assert code_in_use() != before


def test_a_search_plays_what_its_journal_lacks_and_sums_up_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    played: list[int] = []

    def play(seed: int, given: object) -> Summary:
        played.append(seed)
        return Summary(seed, "liveness: stuck" if seed == 1 else None, events=10, acks=5, took_s=1.0)

    monkeypatch.setattr(command, "play_quietly", play)

    def search(seeds: range) -> int:
        with Journal(tmp_path / "seeds", "code") as journal:
            return command.search(seeds, 1, {}, journal)

    assert search(range(3)) == 1
    capsys.readouterr()
    assert search(range(5)) == 1
    told = capsys.readouterr().out
    assert played == [0, 1, 2, 3, 4]
    assert told.startswith("seed 1: liveness: stuck\n5 seeds in ")
    assert told.endswith("1 with a violation\n")
    # What is in the journal and was not asked for is not counted.
    assert search(range(2, 5)) == 0
