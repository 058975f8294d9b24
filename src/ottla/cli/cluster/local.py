"""`ottla cluster up`, `status`, `start`, `restart`, `kill`, `pause`, `resume` and `down`: a cluster on this machine.

For development, tests and demonstrations. These verbs talk to processes, not to a cluster's address: they take no -b,
and -X of `up` are broker properties, as those of `ottla start` are.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from ottla.cli.cluster.local_cluster import ZOOKEEPER, LocalCluster, title
from ottla.cli.cluster.plan import DECIDED_HERE, HOST, METRICS
from ottla.cli.given import GivenPath
from ottla.cli.listen_address import ListenAddress
from ottla.cli.output import done, notice, paint, show, table
from ottla.cli.settings import BROKERS_MAX, OUTPUTS, PORT_MAX, Settings, at_least, parse_assignment

DEFAULT_PORT = 9092
COLOURS = {"running": "green", "paused": "yellow", "stopped": "red"}

_data_dir = click.option(
    "--data-dir",
    required=True,
    metavar="DIR",
    type=GivenPath(file_okay=False),
    help="The folder of the cluster.",
)
_output = click.option("--output", type=click.Choice(OUTPUTS), help="How to print [table].")


def _verb(name: str) -> Callable[[Callable[..., None]], click.Command]:
    """A command that is called with the settings and the cluster in --data-dir."""

    def decorate(function: Callable[..., None]) -> click.Command:
        def call(settings: Settings, /, data_dir: Path, output: str | None, **more: Any) -> None:
            settings.refuse_dry_run(f"cluster {name}")
            if settings.bootstrap is not None:
                raise click.UsageError(f"'cluster {name}' is about processes of this machine and has no -b.")
            settings.output = output or settings.output
            function(settings, LocalCluster(data_dir), **more)

        call.__doc__ = function.__doc__
        call.__click_params__ = getattr(function, "__click_params__", [])  # type: ignore[attr-defined]
        return click.command(name)(_data_dir(_output(click.pass_obj(call))))

    return decorate


_member = click.argument("member", metavar="ID")


# -- all of them ---------------------------------------------------------------------------------------------------


@_verb("up")
@click.option(
    "--brokers",
    type=at_least(1, BROKERS_MAX),
    help="How many [3, or as many as there are]; more than before adds to a cluster.",
)
@click.option(
    "--base-port", type=at_least(2, PORT_MAX), help=f"Of broker 1; ZooKeeper takes the one before [{DEFAULT_PORT}]."
)
@click.option(
    "--metrics", type=ListenAddress(any_host=True), help="Of broker 1; others take the next ports [no metrics]."
)
@click.option("-X", "overrides", multiple=True, metavar="KEY=VALUE", help="A property of every broker; repeatable.")
def up(
    settings: Settings,
    cluster: LocalCluster,
    brokers: int | None,
    base_port: int | None,
    metrics: str | None,
    overrides: tuple[str, ...],
) -> None:
    """Start a cluster on this machine, in the background: brokers 1 to N and their ZooKeeper.

    Prints one line, `ready bootstrap=HOST:PORT,...`, when clients can use it. What runs already goes on, what does not
    is started, with the data that is there.

    \b
      ottla cluster up --brokers 3 --data-dir /tmp/cluster
      ottla cluster up --brokers 3 --data-dir /tmp/cluster --base-port 19092 -X num.partitions=6
    """
    properties = settings.overrides | dict(parse_assignment(override, "-X") for override in overrides)
    if metrics is not None:
        properties[METRICS] = metrics
    if decided := sorted(DECIDED_HERE & properties.keys()):
        raise click.UsageError(f"{', '.join(decided)} cannot be set: `up` decides it for each broker.")
    with cluster.locked():
        plan = cluster.grow(brokers, base_port, properties, DEFAULT_PORT)
        names = [ZOOKEEPER, *map(str, plan.ids)]
        went_on = [name for name in names if not cluster.start(name)]
        if properties and (old := [name for name in went_on if name != ZOOKEEPER]):
            notice(f"broker {', '.join(old)} ran already: -X is for its next start.")
        cluster.await_members(names)
    print(f"ready bootstrap={plan.bootstrap}", flush=True)


@_verb("down")
def down(settings: Settings, cluster: LocalCluster) -> None:
    """Stop the brokers gracefully, then their ZooKeeper. The data stays: `up` starts the same cluster again."""
    with cluster.locked():
        brokers = cluster.stop(map(str, cluster.plan.ids))
        zookeeper = cluster.stop([ZOOKEEPER])
    stopped = [*brokers, *zookeeper]
    said = f"stopped {', '.join(map(title, stopped))}" if stopped else f"nothing of {cluster.folder} was running"
    done(settings, {"stopped": stopped}, said)


@_verb("status")
def status(settings: Settings, cluster: LocalCluster) -> None:
    """The processes of the cluster: pid, address, state, who is the controller, how many partitions each leads."""
    plan = cluster.plan
    controller, leaders = cluster.leaders()
    data: list[Any] = []
    for name, process in cluster.members().items():
        is_broker = name != ZOOKEEPER
        data.append(
            {
                "id": int(name) if is_broker else name,
                "pid": process.pid,
                "address": f"{HOST}:{plan.port_of(int(name)) if is_broker else plan.zookeeper_port}",
                "state": process.state,
                "registered": int(name) in leaders if is_broker else None,
                "controller": int(name) == controller if is_broker else None,
                "leads": leaders.get(int(name)) if is_broker else None,
                "log": str(process.log),
            }
        )
    show(settings, data, lambda: _status_lines(data))


def _status_lines(data: list[dict[str, Any]]) -> list[str]:
    def said(value: bool | None) -> str | None:
        return None if value is None else "yes" if value else "no"

    rows = [
        (
            str(row["id"]),
            row["pid"],
            row["address"],
            row["state"],
            said(row["registered"]),
            said(row["controller"]),
            row["leads"],
            row["log"],
        )
        for row in data
    ]
    lines = table(["ID", "PID", "ADDRESS", "STATE", "REGISTERED", "CONTROLLER", "LEADS", "LOG"], rows)
    return [lines[0], *(_coloured(line, row["state"]) for line, row in zip(lines[1:], data, strict=True))]


def _coloured(line: str, state: str) -> str:
    return line.replace(f" {state}", f" {paint(state, COLOURS[state])}", 1)


# -- one of them ---------------------------------------------------------------------------------------------------


@_verb("start")
@_member
def start(settings: Settings, cluster: LocalCluster, member: str) -> None:
    """Start the broker ID (or `zookeeper`), and wait until it is part of the cluster."""
    with cluster.locked():
        cluster.require_zookeeper(member)
        is_new = cluster.start(member)
        cluster.await_members([member])
    _tell(settings, cluster, member, "started" if is_new else "was running already")


@_verb("restart")
@_member
def restart(settings: Settings, cluster: LocalCluster, member: str) -> None:
    """Stop the broker ID gracefully, start it again, and wait until it is in sync.

    One broker after the other, this is a rolling restart: producers and consumers go on, with retries.
    """
    with cluster.locked():
        cluster.require_zookeeper(member)
        cluster.stop([member])
        cluster.start(member)
        cluster.await_members([member])
        if member != ZOOKEEPER:
            cluster.await_in_sync(int(member))
    _tell(settings, cluster, member, "restarted")


@_verb("kill")
@_member
def kill(settings: Settings, cluster: LocalCluster, member: str) -> None:
    """End the broker ID (or `zookeeper`) with SIGKILL: it gets no chance to say good-bye."""
    _signal(settings, cluster, member, cluster.kill, "killed")


@_verb("pause")
@_member
def pause(settings: Settings, cluster: LocalCluster, member: str) -> None:
    """Halt the broker ID (or `zookeeper`) with SIGSTOP: its connections stay open, and nothing answers."""
    _signal(settings, cluster, member, cluster.pause, "paused")


@_verb("resume")
@_member
def resume(settings: Settings, cluster: LocalCluster, member: str) -> None:
    """Let the broker ID (or `zookeeper`) go on with SIGCONT."""
    _signal(settings, cluster, member, cluster.resume, "goes on")


def _signal(settings: Settings, cluster: LocalCluster, member: str, send: Callable[[str], bool], what: str) -> None:
    pid = cluster.member(member).pid
    _tell(settings, cluster, member, what if send(member) else "was not running", pid)


def _tell(settings: Settings, cluster: LocalCluster, member: str, what: str, pid: int | None = None) -> None:
    process = cluster.member(member)
    pid = process.pid or pid
    where = f" (pid {pid})" if pid is not None else ""
    done(settings, {"id": member, "pid": pid, "state": process.state}, f"{title(member)} {what}{where}")
