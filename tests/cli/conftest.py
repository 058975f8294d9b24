"""The clusters that the command is tried on: our own broker in every run, Apache Kafka too in the slow suite."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from tests.cli.command import Cli
from tests.support.either_cluster import EITHER, one_node


@pytest.fixture(scope="session", params=EITHER)
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The bootstrap servers of a cluster of one node."""
    quick = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "4"}
    with one_node(request.param, tmp_path_factory.mktemp("cluster"), quick) as servers:
        yield servers


@pytest.fixture
def cli(cluster: str) -> Cli:
    return Cli(cluster)


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A name for the test's topic or group that nothing else has."""
    return f"{request.node.originalname.removeprefix('test_')[:40]}-{uuid.uuid4().hex[:6]}"


@pytest.fixture
def topic(cli: Cli, name: str) -> str:
    """An empty topic of two partitions."""
    cli.ok("topic", "create", name, "-p", "2")
    return name


@pytest.fixture
def five(cli: Cli, name: str) -> str:
    """A topic with `a:1 c:3 e:5` in partition 0 and `b:2 d:4` in partition 1, a second of time apart, years ago."""
    cli.ok("topic", "create", name, "-p", "2", "-c", "retention.ms=-1")
    lines = "".join(f"{n % 2} {1_700_000_000_000 + n * 1000} {'abcde'[n]}:{n + 1}\n" for n in range(5))
    cli.ok("produce", name, "-q", "-f", "%p %T %k:%s", stdin=lines)
    return name
