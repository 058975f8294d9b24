"""The brokers under test, and what every measurement does around them: a fresh topic, a level field, CPU time."""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from bench import frames, loadgen
from bench.builds import Build
from bench.measure import Arm, Values
from bench.wire import Connection
from tests.support.brokers import OttlaProcess
from tests.support.kafka_jars import REPO_ROOT
from tests.support.kafka_peer import KafkaPeer
from tests.support.process import BrokerProcess

T = TypeVar("T")
Kind = str | Build  # "kafka", "ottla" as it lies here, or a build of Ottla
# Deleted files go at once, not after the default minute: else the dirty pages of one round are written in the next.
QUICK_DELETE = {"file.delete.delay.ms": "100"}
SETTLE_S = 0.5
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Scale:
    """How much work one round is."""

    seconds: float = 3.0
    warm_up_s: float = 1.0
    bulk_bytes: int = 600_000_000
    client_share: float = 1.0  # of the records that the Java and librdkafka lines send
    compacted_bytes: int = 1_000_000_000


FULL = Scale()
# Two builds of Ottla: many short rounds.
SHORT = Scale(seconds=1.5, warm_up_s=0.5, bulk_bytes=300_000_000, client_share=0.4)
QUICK = Scale(seconds=1.0, warm_up_s=0.3, bulk_bytes=100_000_000, client_share=0.15, compacted_bytes=200_000_000)


@dataclass(frozen=True)
class Topic:
    name: str
    id: bytes


class Contender:
    """A running broker with a folder for the requests that are made for it."""

    def __init__(self, label: str, broker: BrokerProcess, scale: Scale) -> None:
        self.label = label
        self.broker = broker
        self.scale = scale

    def scratch(self, name: str) -> Path:
        return self.broker.folder / name

    def connect(self) -> Connection:
        return Connection(self.broker.host, self.broker.port)

    def load(self, mode: str, **options: object) -> loadgen.Load:
        if mode != "fetch":
            options.setdefault("error_at", frames.PRODUCE_ERROR_AT)
        return loadgen.run(mode, self.broker.host, self.broker.port, **options)

    def with_cpu(self, work: Callable[[], T]) -> tuple[T, float]:
        """What the work returned, and the CPU seconds that the broker spent meanwhile."""
        before = self.broker.cpu_seconds()
        done = work()
        return done, self.broker.cpu_seconds() - before

    @contextlib.contextmanager
    def topic(self, partitions: int = 1, config: Mapping[str, str] | None = None) -> Iterator[Topic]:
        """A new topic for one measurement; afterwards its files are gone and written pages are on the disk."""
        name = f"bench-{next(_numbers)}"
        with self.connect() as connection:
            topic_id = connection.create_topic(name, partitions, {**QUICK_DELETE, **(config or {})})
        yield Topic(name, topic_id)
        with self.connect() as connection:
            connection.delete_topic(name)
        time.sleep(SETTLE_S)
        os.sync()


def make_broker(kind: Kind, folder: Path, properties: Mapping[str, str] | None = None) -> BrokerProcess:
    if isinstance(kind, Build):
        return OttlaProcess(folder, properties, python=str(kind.python), environment=kind.environment)
    if kind == "kafka":
        peer = KafkaPeer(folder, properties)
        peer.format()
        return peer
    # Compiled once, as installed packages are, also where the environment says to leave no bytecode behind.
    bytecode = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(REPO_ROOT / ".cache" / "bytecode")}
    return OttlaProcess(folder, properties, environment=bytecode)


def arms(
    contenders: Sequence[Contender], measure: Callable[[Contender], Values], warm_up: Callable[[Contender], object]
) -> list[Arm]:
    """The same measurement for each of them."""
    return [Arm(each.label, partial(measure, each), partial(warm_up, each)) for each in contenders]
