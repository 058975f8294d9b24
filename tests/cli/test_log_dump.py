"""`ottla log dump` on a folder that Apache Kafka wrote, whole and damaged; no broker is needed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import Cli

FOLDER = Path(__file__).parents[1] / "fixtures" / "kafka-log"
FIRST_LOG = "00000000000000000000.log"


@pytest.fixture
def cli() -> Cli:
    return Cli()


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    return Path(shutil.copytree(FOLDER / "plain-0", tmp_path / "plain-0"))


def items(cli: Cli, *arguments: str | Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in cli.ok("log", "dump", "--output", "json", *arguments).lines]


def test_a_folder_shows_every_file(cli: Cli) -> None:
    found = items(cli, FOLDER / "txn-0", "--verify")
    assert {one["kind"] for one in found} == {
        "batch", "offset_index", "time_index", "aborted_transaction", "producer", "leader_epoch"
    }  # fmt: skip
    assert [one["marker"] for one in found if one.get("marker")][:2] == ["commit", "abort"]
    assert all(one.get("problem") is None for one in found)


def test_records_are_shown_when_asked_for(cli: Cli) -> None:
    log = FOLDER / "plain-0" / FIRST_LOG
    first = items(cli, log, "-r")[0]
    assert (first["base_offset"], first["records"], first["codec"]) == (0, 1, "none")
    assert first["content"] == [
        {
            "offset": 0,
            "timestamp": 1700000000000,
            "key": "k0",
            "value": "value 0",
            "headers": [{"key": "n", "value": "0"}],
        }
    ]
    assert "content" not in items(cli, log)[0]
    shown = cli.ok("log", "dump", "-r", log).lines
    assert shown[0] == str(log)
    assert shown[1].startswith("  at 0  offsets 0-0  1 record  81 B  none  2023-11-14T22:13:20.000Z  epoch 0")
    assert shown[2] == '    0  2023-11-14T22:13:20.000Z  "k0"  "value 0"  n="0"'


def test_damage_is_shown_and_is_status_1(cli: Cli, plain: Path) -> None:
    log = plain / FIRST_LOG
    data = bytearray(log.read_bytes())
    data[70] ^= 0xFF
    log.write_bytes(data[:300])
    outcome = cli("log", "dump", log)
    assert outcome.status == 1
    assert "problem: wrong CRC" in outcome.out
    assert "problem: 48 bytes at position 252 are less than a batch header" in outcome.out
    assert outcome.err == "ottla: 2 problems found: see the lines marked with 'problem'.\n"


def test_an_index_is_compared_with_its_log(cli: Cli, plain: Path) -> None:
    index = plain / "00000000000000000000.index"
    cli.ok("log", "dump", "--verify", index)
    data = bytearray(index.read_bytes())
    data[3] = 99
    index.write_bytes(data)
    outcome = cli("log", "dump", "--verify", index)
    assert outcome.status == 1
    assert "does not fit the log: offset 99 at position 329" in outcome.out


def test_what_is_not_a_log_is_one_sentence(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    assert "is not a file of a log" in cli.fails(1, "log", "dump", tmp_path / "notes.txt")
    assert "holds no files of a log" in cli.fails(1, "log", "dump", tmp_path)
    assert "does not exist" in cli.fails(2, "log", "dump", tmp_path / "none")
