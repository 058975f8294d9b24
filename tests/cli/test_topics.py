"""`ottla topic`, as someone at a prompt meets it."""

from __future__ import annotations

from tests.cli.command import Cli


def test_create_list_describe_and_delete(cli: Cli, name: str) -> None:
    assert cli.ok("topic", "create", name, "-p", "3", "-c", "retention.ms=3600000").out == f"created {name}\n"

    listed = cli.ok("topic", "list", f"{name[:10]}*").lines
    assert listed[0].split() == ["TOPIC", "PARTITIONS", "REPLICAS"]
    assert [name, "3", "1"] in [line.split() for line in listed]

    described = cli.ok("topic", "describe", name).out
    assert "retention.ms  3600000 (1 h)" in described
    assert "PARTITION  LEADER  REPLICAS  ISR  START  END" in described

    assert cli.ok("topic", "delete", name, "-y").out == f"deleted {name}\n"
    assert cli.ok("topic", "list", name).out == "no such topic\n"


def test_json_is_stable(cli: Cli, topic: str) -> None:
    cli.ok("topic", "alter", topic, "-c", "cleanup.policy=compact")
    [listed] = cli.ok("topic", "list", topic, "--output", "json").data
    assert listed == {
        "name": topic,
        "partitions": 2,
        "replication_factor": 1,
        "internal": False,
        "under_replicated": 0,
        "unavailable": 0,
    }
    [described] = cli.ok("--output", "json", "topic", "describe", topic).data
    assert described["settings"] == {"cleanup.policy": "compact"}
    assert described["partitions"][1] == {
        "partition": 1,
        "leader": 1,
        "replicas": [1],
        "isr": [1],
        "start_offset": 0,
        "end_offset": 0,
    }
    assert len(described["id"]) == 22
    assert len(cli.ok("topic", "describe", topic, "--all-settings", "--output", "json").data[0]["settings"]) > 20


def test_yaml(cli: Cli, topic: str) -> None:
    assert f"- name: {topic}\n  partitions: 2\n" in cli.ok("topic", "list", topic, "--output", "yaml").out


def test_dry_runs_change_nothing(cli: Cli, topic: str, name: str) -> None:
    new = f"{name}-new"
    assert cli.ok("--dry-run", "topic", "create", new).out == f"would create {new}\n"
    assert cli.ok("topic", "delete", topic, "--dry-run").out == f"would delete {topic}\n"
    assert "would alter" in cli.ok("topic", "alter", topic, "-p", "5", "-c", "retention.ms=1", "--dry-run").out
    known = {one["name"]: one["partitions"] for one in cli.ok("topic", "list", "--output", "json").data}
    assert new not in known
    assert known[topic] == 2
    assert "would send 2 records (2 bytes)" in cli.ok("produce", topic, "a", "b", "--dry-run").out
    assert cli.ok("topic", "describe", topic, "--output", "json").data[0]["partitions"][0]["end_offset"] == 0


def test_what_a_cluster_refuses_is_one_sentence(cli: Cli, topic: str) -> None:
    assert "exists already" in cli.fails(1, "topic", "create", topic)
    assert cli.ok("topic", "create", topic, "--if-not-exists").out == f"{topic} is there already\n"
    assert "replic" in cli.fails(1, "topic", "create", f"{topic}-3", "-r", "3").lower()
    assert "retention.mss" in cli.fails(1, "topic", "create", f"{topic}-4", "-c", "retention.mss=5")
    assert "did you mean 'retention.ms'" in cli.fails(1, "topic", "alter", topic, "-c", "retention.mss=5")
    assert "retention.ms" in cli.fails(1, "topic", "alter", topic, "-c", "retention.ms=soon")
    assert "partitions can only be added" in cli.fails(1, "topic", "alter", topic, "-p", "2")


def test_an_unknown_topic_comes_with_the_nearest_name(cli: Cli, topic: str) -> None:
    wrong = topic[:-1]
    for arguments in (["topic", "describe"], ["consume", "-e"], ["topic", "offsets"], ["topic", "delete"]):
        assert f"there is no topic '{wrong}': did you mean '{topic}'?" in cli.fails(1, *arguments, wrong)
    assert "ottla topic create qqqq" in cli.fails(1, "topic", "describe", "qqqq")
    assert cli.ok("topic", "delete", wrong, "--if-exists").out == "nothing to delete\n"


def test_partitions_and_settings_are_altered(cli: Cli, topic: str) -> None:
    cli.ok("topic", "alter", topic, "-p", "4", "-c", "retention.ms=1000", "-c", "segment.ms=2000")
    cli.ok("topic", "alter", topic, "--unset", "segment.ms")
    [described] = cli.ok("topic", "describe", topic, "--output", "json").data
    assert len(described["partitions"]) == 4
    assert described["settings"] == {"retention.ms": "1000"}


def test_deletion_asks(cli: Cli, five: str) -> None:
    asked = cli("topic", "delete", five, stdin="n\n")
    assert asked.status == 1
    assert f"delete {five} with at most 5 records? [y/N]" in asked.err
    unanswered = cli("topic", "delete", five)
    assert unanswered.status == 1
    assert "add -y" in unanswered.err
    assert cli.ok("topic", "list", five).lines[1:]
    cli.ok("topic", "delete", five, stdin="yes\n")
    assert cli.ok("topic", "list", five).out == "no such topic\n"


def test_offsets_by_end_and_by_time(cli: Cli, five: str) -> None:
    assert cli.ok("topic", "offsets", five, "--output", "json").data == [
        {"topic": five, "partition": 0, "start_offset": 0, "end_offset": 3},
        {"topic": five, "partition": 1, "start_offset": 0, "end_offset": 2},
    ]
    at_time = cli.ok("topic", "offsets", five, "--at", "1700000002000", "--output", "json").data
    assert [one["offset_at_time"] for one in at_time] == [1, 1]
    late = cli.ok("topic", "offsets", five, "--at", "-1s", "-p", "1", "--output", "json").data
    assert [one["offset_at_time"] for one in late] == [2]


def test_trim_shows_its_plan_and_deletes_the_oldest(cli: Cli, five: str) -> None:
    plan = cli.ok("topic", "trim", five, "--to", "@1700000002000", "--dry-run").lines
    assert [line.split() for line in plan] == [
        ["PARTITION", "START", "NEW", "START", "RECORDS", "(MAX)"],
        ["0", "0", "1", "1"],
        ["1", "0", "1", "1"],
    ]
    refused = cli("topic", "trim", five, "--to", "end", stdin="no\n")
    assert refused.status == 1
    assert "delete at most 5 records" in refused.err
    assert (
        cli.ok("topic", "trim", five, "--to", "-2", "-p", "0", "-y").lines[-1] == f"deleted at most 1 record of {five}"
    )
    assert sorted(cli.ok("consume", five, "-e").lines) == ["2", "3", "4", "5"]
    [trimmed] = cli.ok("topic", "trim", five, "--to", "1", "-p", "1", "-y", "--output", "json").data
    assert trimmed == {"topic": five, "partition": 1, "start_offset": 0, "new_start_offset": 1, "records": 1}
    assert cli.ok("topic", "trim", five, "--to", "start").out == "there is nothing to delete\n"
    assert "no partition 7" in cli.fails(1, "topic", "trim", five, "--to", "1", "-p", "7")
    assert "beyond the end" in cli.fails(1, "topic", "trim", five, "--to", "100", "-p", "0")
