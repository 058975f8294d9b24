"""Brokers of one cluster in this process, on a real ZooKeeper."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ottla.testing import Broker
from tests.support.zookeeper import Zookeeper

MakeBroker = Callable[..., Broker]


@pytest.fixture
def make_broker(zookeeper: Zookeeper, chroot: str, tmp_path: Path) -> Iterator[MakeBroker]:
    """`make_broker(2)` is the broker with that id, running; its data stay when it stops."""
    with contextlib.ExitStack() as running:

        def make(node_id: int, folder: str | None = None, **properties: str) -> Broker:
            settings = {
                "node.id": str(node_id),
                "zookeeper.connect": f"{zookeeper.address}{chroot}",
                "zookeeper.session.timeout.ms": "3000",
                **{name.replace("_", "."): value for name, value in properties.items()},
            }
            data_dir = tmp_path / (folder or f"broker-{node_id}")
            return running.enter_context(Broker(settings, data_dir=data_dir))

        yield make


@pytest.fixture
def three(make_broker: MakeBroker) -> list[Broker]:
    return [make_broker(node_id) for node_id in (1, 2, 3)]
