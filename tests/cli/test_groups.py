"""`ottla group`: state, lag, and moving offsets with a plan that is shown first."""

from __future__ import annotations

import subprocess

import pytest

from tests.cli.command import Cli


@pytest.fixture
def group(cli: Cli, five: str, name: str) -> str:
    """A group, stopped, that has read everything."""
    assert len(cli.ok("consume", five, "-g", name, "-e").lines) == 5
    return name


def committed(cli: Cli, group: str) -> list[int]:
    [described] = cli.ok("group", "describe", group, "--output", "json").data
    return [one["committed_offset"] for one in described["offsets"]]


def test_list_describe_and_lag(cli: Cli, group: str, five: str) -> None:
    listed = {one["name"]: one for one in cli.ok("group", "list", "--output", "json").data}
    assert listed[group] == {"name": group, "state": "empty", "protocol": "classic"}
    assert [group, "empty", "classic"] in [line.split() for line in cli.ok("group", "list").lines]

    cli.ok("produce", five, "x", "y", "-p", "0", "-q")
    [described] = cli.ok("group", "describe", group, "--output", "json").data
    assert described["lag"] == 2
    assert described["offsets"][0] == {
        "topic": five,
        "partition": 0,
        "committed_offset": 3,
        "end_offset": 5,
        "lag": 2,
        "client_id": None,
    }
    assert cli.ok("group", "lag", group, "--output", "json").data == [
        {"group": group, "state": "empty", "topic": five, "lag": 2, "partitions_without_commit": 0}
    ]
    by_partition = cli.ok("group", "lag", group, "--partitions").lines
    assert by_partition[0].split() == ["GROUP", "STATE", "TOPIC", "PARTITION", "LAG"]
    assert [line.split()[-1] for line in by_partition[1:]] == ["2", "0"]


def test_lag_can_be_watched(cli: Cli, group: str) -> None:
    watching = cli.start(
        "group", "lag", group, "-w", "--interval", "0.2", stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert watching.stdout is not None
    seen = [watching.stdout.readline() for _ in range(8)]
    assert sum(line.startswith(b"GROUP") for line in seen) >= 2
    watching.terminate()
    watching.communicate(timeout=30)


def test_seek_shows_its_plan_and_asks(cli: Cli, group: str, five: str) -> None:
    plan = [[five, "0", "3", "0", "-3"], [five, "1", "2", "0", "-2"]]

    dry = cli.ok("group", "seek", group, "--to", "start", "--dry-run").lines
    assert dry[0].split() == ["TOPIC", "PARTITION", "FROM", "TO", "CHANGE"]
    assert [line.split() for line in dry[1:]] == plan
    assert committed(cli, group) == [3, 2]

    refused = cli("group", "seek", group, "--to", "start", stdin="n\n")
    assert refused.status == 1
    assert [line.split() for line in refused.out.splitlines()[1:]] == plan
    assert "move" in refused.err
    assert "nothing was changed" in refused.err
    assert committed(cli, group) == [3, 2]

    assert cli.ok("group", "seek", group, "--to", "start", stdin="y\n").lines[-1] == f"moved {group} in 2 partitions"
    assert committed(cli, group) == [0, 0]


def test_seek_to_places_of_every_kind(cli: Cli, group: str, five: str) -> None:
    def seek(to: str, *more: str) -> list[int]:
        cli.ok("group", "seek", group, "--to", to, "-y", *more)
        return committed(cli, group)

    assert seek("1") == [1, 1]
    assert seek("+1") == [2, 2]
    assert seek("-1", "-t", f"{five}:0") == [1, 2]
    assert seek("end") == [3, 2]
    assert seek("@1700000002000") == [1, 1]
    assert seek("start", "-t", five) == [0, 0]
    assert seek("-100") == [0, 0]
    assert "is at that place already" in cli.ok("group", "seek", group, "--to", "start").out
    [moved] = cli.ok("group", "seek", group, "--to", "2", "-t", f"{five}:1", "-y", "--output", "json").data
    assert moved == {"group": group, "topic": five, "partition": 1, "committed_offset": 0, "new_offset": 2}


def test_seek_explains_what_it_cannot_do(cli: Cli, group: str, five: str) -> None:
    assert "committed nothing: name the topics" in cli.fails(1, "group", "seek", f"{group}-none", "--to", "end")
    assert "no partition 9" in cli.fails(1, "group", "seek", group, "--to", "end", "-t", f"{five}:9")
    assert "TOPIC:0,1,2" in cli.fails(2, "group", "seek", group, "--to", "end", "-t", f"{five}:x")
    assert "no commit for" in cli.fails(1, "group", "seek", f"{group}-none", "--to", "+1", "-t", five)


def test_a_group_with_members_is_described_and_left_alone(cli: Cli, five: str, name: str) -> None:
    consuming = cli.start("consume", five, "-g", name, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert consuming.stdout is not None
        for _ in range(5):
            consuming.stdout.readline()
        [described] = cli.ok("group", "describe", name, "--output", "json").data
        assert described["state"] == "stable"
        assert described["members"][0]["assignment"] == [f"{five}-0", f"{five}-1"]
        assert described["members"][0]["client_id"] == "ottla-cli"
        shown = cli.ok("group", "describe", name).out
        assert "CLIENT" in shown
        assert "127.0.0.1" in shown
    finally:
        consuming.terminate()
        consuming.communicate(timeout=30)


def test_an_active_group_cannot_be_moved_or_deleted(cli: Cli, group: str, five: str) -> None:
    consuming = cli.start("consume", five, "-g", group, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        cli.ok("produce", five, "-q", "now", "-p", "0")
        assert consuming.stdout is not None
        assert consuming.stdout.readline() == b"now\n"
        stop_first = "has 1 active member: stop its consumers first"
        assert stop_first in cli.fails(1, "group", "seek", group, "--to", "start", "-y")
        assert stop_first in cli.fails(1, "group", "delete", group, "-y")
    finally:
        consuming.terminate()
        consuming.communicate(timeout=30)


def test_delete(cli: Cli, group: str) -> None:
    assert cli.ok("group", "delete", group, "--dry-run").out == f"would delete {group}\n"
    assert cli("group", "delete", group, stdin="n\n").status == 1
    assert cli.ok("group", "delete", group, "-y").out == f"deleted {group}\n"
    assert f"there is no group '{group}'" in cli.fails(1, "group", "describe", group)
    assert "there is no group" in cli.fails(1, "group", "lag", group)


def test_kip_848_members_are_named_so(cli: Cli, five: str, name: str) -> None:
    read = cli.ok("consume", five, "-g", name, "-e", "-X", "group.protocol=consumer").lines
    assert sorted(read) == ["1", "2", "3", "4", "5"]
    listed = {one["name"]: one for one in cli.ok("group", "list", "--output", "json").data}
    assert listed[name]["protocol"] == "consumer"
    assert committed(cli, name) == [3, 2]
