"""The store of the simulation passes the suite, too."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from random import Random

import pytest

from ottla.testing.simulation.ensemble import Ensemble
from ottla.testing.simulation.loop import Process, SimulatedLoop
from ottla.testing.simulation.store import SimulatedStore
from tests.metastore.conformance import OpenStore, StoreConformance


class TestSimulated(StoreConformance):
    @pytest.fixture
    def loop(self) -> Iterator[SimulatedLoop]:
        loop = SimulatedLoop()
        yield loop
        loop.threads.close()
        loop.close()

    @pytest.fixture
    def open_store(self, loop: SimulatedLoop) -> OpenStore:
        self._loop = loop
        ensemble = Ensemble(loop)
        return lambda: SimulatedStore(
            ensemble,
            Process(loop, "client"),
            Random(1),
            timeout_s=6,
            is_linked=lambda: True,
            delay_s=lambda: 0.001,
            say=lambda what: None,
        )

    def settle(self, done: Callable[[], bool]) -> None:
        async def settled() -> None:
            while not done():
                await asyncio.sleep(0.001)

        self._loop.run_until_complete(asyncio.wait_for(settled(), 600))
