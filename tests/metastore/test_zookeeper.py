"""The store in ZooKeeper passes the suite."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ottla.metastore.zookeeper import open_zookeeper
from tests.metastore.conformance import OpenStore, StoreConformance
from tests.metastore.waiting import until
from tests.support.zookeeper import Zookeeper


class TestZookeeper(StoreConformance):
    @pytest.fixture
    def open_store(self, zookeeper: Zookeeper, chroot: str) -> OpenStore:
        return lambda: open_zookeeper(zookeeper.options(chroot))

    def settle(self, done: Callable[[], bool]) -> None:
        until(done)
