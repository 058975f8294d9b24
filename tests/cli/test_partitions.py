"""`ottla partition`, and what `topic describe` and `cluster health` say of replicas, on three brokers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cli.command import Cli
from tests.support.trio import Trio, require, trios

pytestmark = [pytest.mark.xdist_group("trio")]


@pytest.fixture(scope="module", params=trios())
def trio(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trio]:
    quick = {"auto.leader.rebalance.enable": "false"}
    require(request.param)
    with request.param(tmp_path_factory.mktemp("trio"), quick) as running:
        yield running


@pytest.fixture
def cli(trio: Trio) -> Cli:
    return Cli(trio.bootstrap)


@pytest.fixture
def moving(cli: Cli, name: str) -> str:
    """A topic of two partitions on brokers 1 and 2, with records."""
    cli.ok("topic", "create", name, "-p", "2", "-r", "2")
    cli.ok("partition", "move", name, "--to", "1,2", "--wait", "60")
    cli.ok("produce", name, "-q", stdin="".join(f"{n}\n" for n in range(500)))
    return name


def described(cli: Cli, topic: str) -> list[Any]:
    ((found),) = cli.ok("topic", "describe", topic, "--output", "json").data
    partitions: list[Any] = found["partitions"]
    return partitions


def brokers(cli: Cli) -> list[int]:
    """None of them while the cluster does not answer."""
    outcome = cli("cluster", "info", "--output", "json")
    return [] if outcome.status else [one["id"] for one in outcome.data["brokers"]]


def records(cli: Cli, topic: str) -> set[str]:
    return set(cli.ok("consume", topic, "-e").lines)


def test_a_partition_moves_with_its_records(cli: Cli, moving: str) -> None:
    said = cli.ok("partition", "move", f"{moving}:0", "--to", "3,1", "--wait", "60").out
    assert "moving" in said
    first, second = described(cli, moving)
    assert (first["replicas"], sorted(first["isr"])) == ([3, 1], [1, 3])
    assert second["replicas"] == [1, 2]
    assert records(cli, moving) == {str(n) for n in range(500)}
    assert cli.ok("partition", "status").out == "nothing is being moved\n"
    assert cli.ok("partition", "status", "--wait", "60", "--output", "json").data == []


def test_a_dry_run_moves_nothing(cli: Cli, moving: str) -> None:
    [first, _] = cli.ok("partition", "move", moving, "--to", "2,3", "--dry-run", "--output", "json").data
    assert first == {"topic": moving, "partition": 0, "replicas": [1, 2], "to": [2, 3], "problem": None}
    assert [one["replicas"] for one in described(cli, moving)] == [[1, 2], [1, 2]]


def test_what_cannot_be_moved_is_told(cli: Cli, moving: str) -> None:
    assert "99" in cli.fails(1, "partition", "move", f"{moving}:0", "--to", "1,99")
    assert "has no partition 7: it has 2" in cli.fails(1, "partition", "move", f"{moving}:7", "--to", "1,2")
    assert "there is no topic" in cli.fails(1, "partition", "move", "no-such-topic:0", "--to", "1,2")
    assert "is not being moved" in cli.fails(1, "partition", "move", f"{moving}:0", "--cancel")
    assert "--to takes ids" in cli.fails(2, "partition", "move", f"{moving}:0", "--to", "one")
    assert "say where to" in cli.fails(2, "partition", "move", f"{moving}:0")
    assert [one["replicas"] for one in described(cli, moving)] == [[1, 2], [1, 2]]


def test_a_move_to_a_broker_that_is_away_shows_how_far_it_is_and_can_be_cancelled(
    cli: Cli, trio: Trio, moving: str
) -> None:
    # How many of those of the fixture are in this partition is the client's affair.
    cli.ok("produce", moving, "-q", "-p", "0", stdin="".join(f"{n}\n" for n in range(500)))
    trio.nodes[3].stop()
    try:
        wait_for(lambda: brokers(cli) == [1, 2])
        cli.ok("partition", "move", f"{moving}:0", "--to", "1,3")
        [row] = cli.ok("partition", "status", "--output", "json").data
        assert (row["topic"], row["partition"], row["replicas"], row["to"]) == (moving, 0, [1, 2], [1, 3])
        # A broker that is busy may not have told the sizes of its replicas in time.
        wait_for(lambda: cli.ok("partition", "status", "--output", "json").data[0]["silent"] == [3])
        [row] = cli.ok("partition", "status", "--output", "json").data
        assert row["bytes"] > 500
        assert row["adding"] == [{"broker": 3, "bytes": None}]
        said = cli.ok("partition", "status")
        assert "broker 3: does not answer" in said.out
        assert "broker 3 does not say how large its replicas are" in said.err
        assert "1 partition not moved after 0.1 s" in cli.fails(1, "partition", "status", "--wait", "0.1")
        cli.ok("partition", "move", f"{moving}:0", "--cancel", "--wait", "60")
        assert described(cli, moving)[0]["replicas"] == [1, 2]
    finally:
        trio.nodes[3].start()
        trio.await_in_sync()


def test_health_and_describe_name_what_a_missing_broker_leaves_short(cli: Cli, trio: Trio, name: str) -> None:
    for topic, least in ((f"{name}-1", 1), (f"{name}-2", 2), (f"{name}-3", 3)):
        cli.ok("topic", "create", topic, "-r", "3", "-c", f"min.insync.replicas={least}")
    cli.ok("topic", "create", f"{name}-alone", "-r", "1")
    cli.ok("partition", "move", f"{name}-alone", "--to", "3", "--wait", "60")
    assert cli.ok("cluster", "health", "--wait", "60", "--output", "json").data["healthy"] is True
    assert cli.ok("topic", "describe", "--under-replicated").out == "none\n"
    trio.nodes[3].stop()
    try:
        wait_for(lambda: cli("cluster", "health", "--output", "json").data["leaderless_partitions"] != [])
        outcome = cli("cluster", "health", "--output", "json")
        assert outcome.status == 1
        health = outcome.data
        assert health["missing_brokers"] == [3]
        assert health["leaderless_partitions"] == [f"{name}-alone-0"]
        short = [f"{name}-{least}-0" for least in (1, 2, 3)]
        assert set(short) <= set(health["under_replicated_partitions"])
        assert short[2] in health["under_min_isr_partitions"]
        assert short[1] in health["at_min_isr_partitions"]
        assert not {short[0], short[1]} & set(health["under_min_isr_partitions"])
        assert "below min ISR" in cli("cluster", "health").out
        [lost] = cli.ok("topic", "describe", "--unavailable", "--output", "json").data
        assert (lost["topic"], lost["leader"], lost["replicas"]) == (f"{name}-alone", None, [3])
        under = cli.ok("topic", "describe", f"{name}-1", "--under-replicated", "--output", "json").data
        assert [(one["topic"], one["partition"], sorted(one["isr"])) for one in under] == [(f"{name}-1", 0, [1, 2])]
    finally:
        trio.nodes[3].start()
        trio.await_in_sync()
        cli.ok("topic", "delete", "-y", f"{name}-alone", *(f"{name}-{least}" for least in (1, 2, 3)))


def test_the_preferred_leader_is_elected_again(cli: Cli, trio: Trio, moving: str) -> None:
    cli.ok("partition", "elect", moving)
    trio.nodes[1].stop()
    try:
        wait_for(lambda: all(one["leader"] == 2 for one in described(cli, moving)))
    finally:
        trio.nodes[1].start()
        trio.await_in_sync()
    planned = cli.ok("partition", "elect", moving, "--dry-run", "--output", "json").data
    assert [(row["partition"], row["leader"], row["preferred"]) for row in planned] == [(0, 2, 1), (1, 2, 1)]
    assert "elected leaders of 2 partitions" in cli.ok("partition", "elect", moving).out
    wait_for(lambda: all(one["leader"] == 1 for one in described(cli, moving)))
    assert "led by its first replica" in cli.ok("partition", "elect", f"{moving}:0").out


def throttled(cli: Cli, topic: str) -> tuple[dict[str, str], list[dict[str, str]]]:
    """What is set of throttles: on the topic, and on each broker."""

    def of(kind: str, name: str) -> dict[str, str]:
        entries = cli.ok("config", "get", kind, name, "--output", "json").data
        return {one["name"]: one["value"] for one in entries if "throttled" in one["name"] and one["source"] == kind}

    return of("topic", topic), [of("broker", str(broker)) for broker in (1, 2, 3)]


def test_a_move_under_a_throttle_sets_it_and_takes_it_away(cli: Cli, moving: str) -> None:
    cli.ok("partition", "move", f"{moving}:0", "--to", "3,1", "--throttle", "5000000")
    of_topic, of_brokers = throttled(cli, moving)
    assert of_topic == {
        "leader.replication.throttled.replicas": "0:1,0:2",
        "follower.replication.throttled.replicas": "0:3",
    }
    rates = {f"{side}.replication.throttled.rate": "5000000" for side in ("leader", "follower")}
    assert of_brokers == [rates, rates, rates]
    said = cli.ok("partition", "status", "--wait", "60", "--remove-throttles")
    assert f"topic {moving}" in said.err and "broker 3" in said.err
    assert throttled(cli, moving) == ({}, [{}, {}, {}])
    assert "there are no throttles" in cli.ok("partition", "status", "--remove-throttles").err
    cli.ok("partition", "move", f"{moving}:0", "--to", "1,2", "--throttle", "5000000", "--wait", "60")
    assert throttled(cli, moving) == ({}, [{}, {}, {}]), "with --wait it ends with the move"
    assert "copies nothing" in cli.fails(2, "partition", "move", f"{moving}:0", "--cancel", "--throttle", "1")


def test_an_unclean_election_asks_and_names_the_price(cli: Cli, moving: str) -> None:
    assert "name the partitions" in cli.fails(2, "partition", "elect", "--unclean")
    assert "every one of them has a leader" in cli.ok("partition", "elect", f"{moving}:0", "--unclean").out


def test_an_unclean_election_gives_a_partition_without_replicas_in_sync_a_leader(
    cli: Cli, trio: Trio, moving: str
) -> None:
    cli.ok("partition", "move", f"{moving}:1", "--to", "3,2", "--wait", "60")
    cli.ok("partition", "elect", moving)
    cli.ok("config", "set", "topic", moving, "min.insync.replicas=1")
    trio.nodes[2].stop()
    try:
        wait_for(lambda: described(cli, moving)[1]["isr"] == [3])
        trio.nodes[3].kill()
        trio.nodes[2].start()
        wait_for(lambda: brokers(cli) == [1, 2])
        if described(cli, moving)[1]["leader"] is None:  # where no replica is eligible after a clean stop (KIP-966)
            assert "nothing was changed" in cli.fails(1, "partition", "elect", f"{moving}:1", "--unclean", stdin="n\n")
            cli.ok("partition", "elect", f"{moving}:1", "--unclean", "-y")
            wait_for(lambda: described(cli, moving)[1]["leader"] == 2)
    finally:
        for node in (2, 3):
            if not trio.nodes[node].running:
                trio.nodes[node].start()
        trio.await_in_sync()


def wait_for(is_so: Any, timeout_s: float = 120) -> None:
    deadline = time.monotonic() + timeout_s
    while not is_so():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.2)
