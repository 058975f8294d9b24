"""`ottla topic create`, `alter`, `delete` and `trim`. What destroys records shows what it will do and asks first."""

from __future__ import annotations

import sys
from typing import Any

import click

from ottla.cli.config_entries import change_entries
from ottla.cli.connection import ANSWER_S_MAX, Cluster, require_topic_name
from ottla.cli.error_sentences import failed
from ottla.cli.name_completion import complete_topic
from ottla.cli.output import Planned, at_most, confirm, done, plural, show, table
from ottla.cli.records.positions import Kind, Partition, log_bounds, parse_position, resolve
from ottla.cli.settings import Settings, at_least, command, parse_assignment, partition_option
from ottla.common.errors import OttlaError

# librdkafka takes no more; a broker refuses earlier.
_PARTITIONS_MAX = 100_000
_REPLICAS_MAX = 10_000


@command("create", changes=True)
@click.argument("topics", nargs=-1, required=True, metavar="TOPIC...")
@click.option("-p", "--partitions", type=at_least(1, _PARTITIONS_MAX), help="How many [the broker's num.partitions].")
@click.option("-r", "--replicas", type=at_least(1, _REPLICAS_MAX), help="Replication factor [the broker's default].")
@click.option("-c", "--config", "configs", multiple=True, metavar="NAME=VALUE", help="A topic setting; repeatable.")
@click.option("--if-not-exists", is_flag=True, help="A topic that is there already is fine.")
def create(
    settings: Settings,
    topics: tuple[str, ...],
    partitions: int | None,
    replicas: int | None,
    configs: tuple[str, ...],
    if_not_exists: bool,
) -> None:
    """Create topics.

    \b
      ottla topic create orders -p 3
      ottla topic create users -c cleanup.policy=compact --if-not-exists
    """
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import NewTopic

    config = dict(parse_assignment(setting, "-c") for setting in configs)
    for name in topics:
        require_topic_name(name)
    cluster = Cluster(settings)
    cluster.reach()
    wanted = [
        NewTopic(name, num_partitions=partitions or -1, replication_factor=replicas or -1, config=config)
        for name in dict.fromkeys(topics)
    ]
    answers = cluster.admin.create_topics(wanted, validate_only=settings.dry_run, request_timeout=ANSWER_S_MAX)
    outcomes: list[Any] = []
    failures: list[OttlaError] = []
    for name, answer in answers.items():
        try:
            cluster.wait(answer)
            outcomes.append({"name": name, "created": not settings.dry_run})
        except KafkaException as error:
            exists = error.args[0].name() == "TOPIC_ALREADY_EXISTS"
            if exists and if_not_exists:
                outcomes.append({"name": name, "created": False})
            else:
                failures.append(_not_created(name, error, exists))
    show(settings, outcomes, lambda: [_created(outcome, settings) for outcome in outcomes])
    _raise_all(failures)


def _created(outcome: dict[str, Any], settings: Settings) -> str:
    if outcome["created"]:
        return f"created {outcome['name']}"
    return f"would create {outcome['name']}" if settings.dry_run else f"{outcome['name']} is there already"


def _not_created(name: str, error: Exception, exists: bool) -> OttlaError:
    if exists:
        return OttlaError(f"topic '{name}' exists already: change it with `ottla topic alter`, or add --if-not-exists.")
    return failed(error, f"topic '{name}'")


def _raise_all(failures: list[OttlaError]) -> None:
    if failures:
        sys.stdout.flush()
        raise OttlaError("\nottla: ".join(map(str, failures)))


# -- alter ---------------------------------------------------------------------------------------------------------


@command("alter", changes=True)
@click.argument("topic", shell_complete=complete_topic)
@click.option("-p", "--partitions", type=at_least(1, _PARTITIONS_MAX), help="Grow to this many.")
@click.option("-c", "--config", "configs", multiple=True, metavar="NAME=VALUE", help="Set a setting; repeatable.")
@click.option("--unset", "unset", multiple=True, metavar="NAME", help="Back to the default; repeatable.")
def alter(
    settings: Settings, topic: str, partitions: int | None, configs: tuple[str, ...], unset: tuple[str, ...]
) -> None:
    """Add partitions to TOPIC, or change its settings.

    \b
      ottla topic alter orders -p 6
      ottla topic alter orders -c retention.ms=86400000 --unset retention.bytes
    """
    changes: dict[str, str | None] = dict(parse_assignment(setting, "-c") for setting in configs)
    changes |= dict.fromkeys(unset)
    if not changes and partitions is None:
        raise click.UsageError("say what to alter: -p PARTITIONS, -c NAME=VALUE or --unset NAME.")
    cluster = Cluster(settings)
    present = len(cluster.topics([topic])[topic].partitions)
    if partitions is not None and partitions <= present:
        raise OttlaError(f"topic '{topic}' has {plural(present, 'partition')}: partitions can only be added.")
    if changes:
        change_entries(cluster, "topic", topic, changes, validate_only=settings.dry_run)
    if partitions is not None:
        _grow(cluster, topic, partitions, settings.dry_run)
    words = [f"{name}={value}" if value is not None else f"{name} back to default" for name, value in changes.items()]
    words += [] if partitions is None else [f"{present} to {partitions} partitions"]
    verb = "would alter" if settings.dry_run else "altered"
    changed = not settings.dry_run
    data: Any = {"name": topic, "partitions": partitions or present, "settings": changes, "changed": changed}
    done(settings, data, f"{verb} {topic}: {', '.join(words)}")


def _grow(cluster: Cluster, topic: str, partitions: int, validate_only: bool) -> None:
    from confluent_kafka.admin import NewPartitions

    answers = cluster.admin.create_partitions(
        [NewPartitions(topic, partitions)], validate_only=validate_only, request_timeout=ANSWER_S_MAX
    )
    cluster.wait_about(f"topic '{topic}'", answers[topic])


# -- delete --------------------------------------------------------------------------------------------------------


@command("delete", changes=True, asks=True)
@click.argument("topics", nargs=-1, required=True, metavar="TOPIC...", shell_complete=complete_topic)
@click.option("--if-exists", is_flag=True, help="A topic that is not there is fine.")
def delete(settings: Settings, topics: tuple[str, ...], if_exists: bool) -> None:
    """Delete topics and all their records."""
    from confluent_kafka import KafkaException

    cluster = Cluster(settings)
    wanted = list(dict.fromkeys(topics))
    if if_exists:
        known = cluster.all_topics().topics
        wanted = [name for name in wanted if name in known]
    described = cluster.topics(wanted) if wanted else {}
    if settings.dry_run or not wanted:
        _tell_deleted(settings, wanted, deleted=False)
        return
    confirm(settings, f"delete {_and_their_size(cluster, described)}?")
    failures = []
    for name, answer in cluster.admin.delete_topics(wanted, request_timeout=ANSWER_S_MAX).items():
        try:
            cluster.wait(answer)
        except KafkaException as error:
            wanted.remove(name)
            failures.append(failed(error, f"topic '{name}'"))
    _tell_deleted(settings, wanted, deleted=True)
    _raise_all(failures)


def _tell_deleted(settings: Settings, names: list[str], *, deleted: bool) -> None:
    data: Any = [{"name": name, "deleted": deleted} for name in names]
    verb = "deleted" if deleted else "would delete"
    show(settings, data, lambda: [f"{verb} {name}" for name in names] or ["nothing to delete"])


def _and_their_size(cluster: Cluster, described: dict[str, Any]) -> str:
    bounds = log_bounds(cluster, [(name, p.id) for name, topic in described.items() for p in topic.partitions if p.isr])
    records = sum(bound.end - bound.start for bound in bounds.values())
    names = ", ".join(described) if len(described) <= 5 else plural(len(described), "topic")
    return f"{names} with {at_most(records, 'record')}"


# -- trim ----------------------------------------------------------------------------------------------------------


@command("trim", changes=True, asks=True)
@click.argument("topic", shell_complete=complete_topic)
@click.option("--to", "to", required=True, metavar="WHERE", help="Delete what is before: N, @TIME, end; -N keeps N.")
@partition_option
def trim(settings: Settings, topic: str, to: str, partitions: tuple[int, ...]) -> None:
    """Delete the oldest records of TOPIC, up to --to. Shows what it will delete, and asks.

    \b
      ottla topic trim orders --to @-7d             what is older than a week
      ottla topic trim orders --to -1000 -p 0       all but the last thousand of partition 0
    """
    position = parse_position(to, "--to")
    cluster = Cluster(settings)
    present = {partition.id for partition in cluster.topics([topic])[topic].partitions}
    if absent := set(partitions) - present:
        raise OttlaError(f"topic '{topic}' has no partition {min(absent)}: it has 0 to {max(present)}.")
    bounds = log_bounds(cluster, [(topic, index) for index in sorted(partitions or present)])
    if position.kind is Kind.OFFSET and partitions and any(position.value > b.end for b in bounds.values()):
        raise OttlaError(f"offset {position.value} is beyond the end of the log: see `ottla topic offsets {topic}`.")
    targets = resolve(cluster, bounds, position)
    plan = {partition: offset for partition, offset in targets.items() if offset > bounds[partition].start}
    rows = [(index, bounds[topic, index].start, offset) for (_, index), offset in plan.items()]
    records = sum(new - start for _, start, new in rows)
    with_plan = Planned(
        settings,
        data=[
            {"topic": topic, "partition": p, "start_offset": start, "new_start_offset": new, "records": new - start}
            for p, start, new in rows
        ],
        lines=table(["PARTITION", "START", "NEW START", "RECORDS (MAX)"], [(*row, row[2] - row[1]) for row in rows]),
    )
    if with_plan.agreed(f"delete {at_most(records, 'record')} of {topic}?", nothing="there is nothing to delete"):
        _delete_records(cluster, plan)
        with_plan.done(f"deleted {at_most(records, 'record')} of {topic}")


def _delete_records(cluster: Cluster, plan: dict[Partition, int]) -> None:
    from confluent_kafka import TopicPartition

    wanted = [TopicPartition(topic, index, offset) for (topic, index), offset in plan.items()]
    for partition, answer in cluster.admin.delete_records(wanted, request_timeout=ANSWER_S_MAX).items():
        cluster.wait_about(f"{partition.topic}-{partition.partition}", answer)
