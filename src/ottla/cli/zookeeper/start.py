"""`ottla zookeeper start`: becomes the server, so that a signal to this process reaches it and nothing else."""

from __future__ import annotations

import os
import socket
import sys
import time
from pathlib import Path

import click

from ottla.cli.given import GivenPath
from ottla.cli.listen_address import ListenAddress
from ottla.cli.settings import Settings
from ottla.cli.zookeeper import server
from ottla.common.errors import OttlaError
from ottla.exposition.address import parse_address

_WAIT_S = 60.0


@click.command("start")
@click.option(
    "--listen",
    type=ListenAddress(port_min=1),
    default="127.0.0.1:2181",
    help="Where to listen [127.0.0.1:2181].",
)
@click.option(
    "--data-dir",
    metavar="DIR",
    type=GivenPath(),
    default=Path("/tmp/ottla-zookeeper"),
    help="Where it keeps its data [/tmp/ottla-zookeeper].",
)
@click.pass_obj
def start(settings: Settings, listen: str, data_dir: Path) -> None:
    """Start a ZooKeeper server for development and serve until Ctrl-C.

    It is the one that comes inside PySpark's jars, and needs Java. stdout gets the one line `ready ...`, the log goes
    to stderr. In production, point zookeeper.connect at an ensemble of your own.

    \b
      ottla zookeeper start
      ottla zookeeper start --listen 127.0.0.1:12181 --data-dir /var/lib/ottla-zookeeper
      ottla start -X zookeeper.connect=127.0.0.1:2181/ottla
    """
    settings.refuse_dry_run("zookeeper start")
    host, port = parse_address(listen, what="--listen")
    command = server.prepare(data_dir, host, port)
    _check_free(host, port)
    _announce_when_ready(host, port)
    sys.stdout.flush()
    os.dup2(2, 1)
    os.execv(command[0], command)


def _check_free(host: str, port: int) -> None:
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind(address)
    except OSError as error:
        raise OttlaError(f"cannot listen on {host}:{port}: {error.strerror or error}.") from None


def _announce_when_ready(host: str, port: int) -> None:
    """From a process that ends with it: this one will be Java by then."""
    serving = os.getpid()
    if os.fork() == 0:
        # Not a child of the server, which would not take note of its end.
        if os.fork() == 0 and _wait_until_ready(host, port, serving):
            print(f"ready address={host}:{port}", flush=True)
        os._exit(0)
    os.wait()


def _wait_until_ready(host: str, port: int, serving: int) -> bool:
    deadline = time.monotonic() + _WAIT_S
    while time.monotonic() < deadline:
        if server.is_serving(host, port):
            return True
        try:
            os.kill(serving, 0)
        except ProcessLookupError:
            return False
        time.sleep(0.05)
    return False
