"""`ottla log requests`: brokers log the requests of a client, an address, a user, a topic or an API for a while."""

from __future__ import annotations

import re
import time
from typing import Any

import click

from ottla.cli.config_entries import change_entries, fetch_entries
from ottla.cli.connection import Cluster
from ottla.cli.output import done, plural
from ottla.cli.settings import Settings, at_least, command
from ottla.common.errors import OttlaError

WHICH, UNTIL = "ottla.request.log", "ottla.request.log.until.ms"
SECONDS_MAX = 3_600
_DURATION = re.compile(r"(?P<number>\d+)(?P<unit>s|m|h)?")
_UNITS = {None: 1, "s": 1, "m": 60, "h": 3_600}


def _duration(text: str) -> int:
    match = _DURATION.fullmatch(text)
    if match is None or not 0 < (seconds := int(match["number"]) * _UNITS[match["unit"]]) <= SECONDS_MAX:
        raise click.BadParameter(f"'{text}' is not a time up to an hour, as 60s or 5m.")
    return seconds


@command("requests", changes=True)
@click.option("--client", "clients", multiple=True, metavar="ID", help="Of this client id; repeatable.")
@click.option("--topic", "topics", multiple=True, metavar="TOPIC", help="That name this topic; repeatable.")
@click.option("--address", "addresses", multiple=True, metavar="HOST", help="From this address; repeatable.")
@click.option("--user", "users", multiple=True, metavar="NAME", help="Of this user; repeatable.")
@click.option("--api", "apis", multiple=True, metavar="API", help="Of this API, as Produce; repeatable.")
@click.option("--all", "everything", is_flag=True, help="All requests.")
@click.option("--for", "seconds", type=_duration, default="60s", metavar="TIME", help="Until it ends by itself [60s].")
@click.option("--off", is_flag=True, help="End it now.")
@click.option("--broker", "brokers", type=at_least(0), multiple=True, metavar="ID", help="Only there [all brokers].")
def requests(
    settings: Settings,
    clients: tuple[str, ...],
    topics: tuple[str, ...],
    addresses: tuple[str, ...],
    users: tuple[str, ...],
    apis: tuple[str, ...],
    everything: bool,
    seconds: int,
    off: bool,
    brokers: tuple[int, ...],
) -> None:
    """Let brokers log requests for a while, with where their time went. Of several conditions one has to be right.

    The lines are in the brokers' own logs, by the logger `ottla.request`.

    \b
      ottla log requests --client billing --for 60s
      ottla log requests --topic orders --api OffsetCommit --broker 2
      ottla log requests --off
    """
    given = {"client": clients, "topic": topics, "address": addresses, "user": users, "api": apis}
    which = ["*"] if everything else [f"{field}={value}" for field, values in given.items() for value in values]
    if bool(which) == off:
        raise click.UsageError("say which requests (--client, --topic, --address, --user, --api or --all), or --off.")
    if doubtful := [one for one in which if "," in one or " " in one]:
        raise click.UsageError(f"'{doubtful[0]}' cannot be told apart from several: it has a comma or a space.")
    cluster = Cluster(settings)
    nodes = sorted(node.id for node in cluster.reach().nodes)
    if unknown := [broker for broker in brokers if broker not in nodes]:
        raise OttlaError(f"there is no broker {unknown[0]}: there is {', '.join(map(str, nodes))}.")
    wanted = sorted(set(brokers)) or nodes
    _require_ours(cluster, wanted[0])
    until_ms = int((time.time() + seconds) * 1_000)
    changes: dict[str, str | None] = {
        WHICH: None if off else ",".join(which),
        UNTIL: None if off else str(until_ms),
    }
    for broker in wanted:
        change_entries(cluster, "broker", str(broker), changes, validate_only=settings.dry_run)
    data: Any = {"brokers": wanted, "which": which, "until_ms": None if off else until_ms}
    where = f"broker {', '.join(map(str, wanted))}"
    would = "would log" if settings.dry_run else "logs"
    said = (
        f"{where} logs no requests any more"
        if off
        else f"{where} {would} {' or '.join(which)} for {plural(seconds, 'second')}"
    )
    done(settings, data, said)


def _require_ours(cluster: Cluster, broker: int) -> None:
    """Apache Kafka would take the setting, and do nothing."""
    known = {entry["name"] for entry in fetch_entries(cluster, "broker", [str(broker)])[str(broker)]}
    if WHICH not in known:
        raise OttlaError(
            f"broker {broker} has no such log, as only Ottla's brokers have: on Apache Kafka set the level of the "
            "logger kafka.request.logger with kafka-configs --entity-type broker-loggers."
        )
