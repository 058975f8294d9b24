"""Sessions of the simulated store: what a client is told, and when."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from random import Random

import pytest

from ottla.metastore.port import Create, Delete, SessionState, Set, StoreUnavailable
from ottla.testing.simulation.ensemble import Ensemble
from ottla.testing.simulation.loop import Process, SimulatedLoop
from ottla.testing.simulation.store import SimulatedStore

TIMEOUT_S = 6.0


class Place:
    def __init__(self) -> None:
        self.loop = SimulatedLoop()
        self.ensemble = Ensemble(self.loop)
        self.is_linked = True
        self.process, self.store = self.client()
        self.heard: list[SessionState] = []
        self.store.on_session(self.heard.append)

    def client(self) -> tuple[Process, SimulatedStore]:
        process = Process(self.loop, "client")
        store = SimulatedStore(
            self.ensemble,
            process,
            Random(1),
            timeout_s=TIMEOUT_S,
            is_linked=lambda: self.is_linked,
            delay_s=lambda: 0.01,
            say=lambda what: None,
        )
        return process, store

    def pass_time(self, seconds: float) -> None:
        self.loop.run_until_complete(asyncio.sleep(seconds))


@pytest.fixture
def place() -> Iterator[Place]:
    place = Place()
    yield place
    place.loop.threads.close()
    place.loop.close()


def test_a_session_that_is_heard_of_lives_for_ever(place: Place) -> None:
    place.store.multi([Create("/here", ephemeral=True)])
    place.pass_time(100 * TIMEOUT_S)
    assert "/here" in place.ensemble.tree
    assert place.heard == []


def test_ephemeral_nodes_of_a_dead_process_go_after_the_timeout(place: Place) -> None:
    place.store.multi([Create("/here", ephemeral=True)])
    place.process.kill()
    place.pass_time(TIMEOUT_S / 2)
    assert "/here" in place.ensemble.tree
    place.pass_time(TIMEOUT_S)
    assert "/here" not in place.ensemble.tree


def test_who_is_cut_off_is_told_that_its_session_is_lost_and_begins_a_new_one(place: Place) -> None:
    place.store.multi([Create("/here", ephemeral=True)])
    place.is_linked = False
    place.pass_time(2 * TIMEOUT_S)
    assert place.heard == [SessionState.SUSPENDED, SessionState.LOST]
    assert "/here" not in place.ensemble.tree
    place.is_linked = True
    place.pass_time(1)
    assert place.heard[-1] is SessionState.CONNECTED
    place.store.multi([Create("/here", ephemeral=True)])


def test_a_short_cut_leaves_the_session_as_it_is(place: Place) -> None:
    place.store.multi([Create("/here", ephemeral=True)])
    place.is_linked = False
    place.pass_time(TIMEOUT_S * 0.8)
    place.is_linked = True
    place.pass_time(1)
    assert place.heard == [SessionState.SUSPENDED, SessionState.CONNECTED]
    assert "/here" in place.ensemble.tree


def test_a_paused_client_learns_of_its_loss_by_its_first_call(place: Place) -> None:
    place.process.pause()
    place.pass_time(2 * TIMEOUT_S)
    place.process.resume()
    with pytest.raises(StoreUnavailable):
        place.store.multi([Create("/late")])
    assert "/late" not in place.ensemble.tree


def test_sessions_do_not_end_while_no_server_answers(place: Place) -> None:
    other, store = place.client()
    store.multi([Create("/here", ephemeral=True)])
    other.kill()
    place.ensemble.is_up = False
    place.pass_time(10 * TIMEOUT_S)
    assert "/here" in place.ensemble.tree
    place.ensemble.return_to_service()
    place.pass_time(TIMEOUT_S / 2)
    assert "/here" in place.ensemble.tree
    place.pass_time(TIMEOUT_S)
    assert "/here" not in place.ensemble.tree


def test_a_change_whose_answer_is_lost_may_have_been_made(place: Place) -> None:
    async def lose_answer() -> None:
        writing = place.loop.run_in_executor(None, place.store.multi, [Create("/a")])
        await asyncio.sleep(0.015)
        place.is_linked = False
        with pytest.raises(StoreUnavailable):
            await writing

    place.loop.run_until_complete(place.loop.create_task(lose_answer(), context=place.process.context()))
    assert "/a" in place.ensemble.tree


def test_a_read_may_be_old_and_is_not_after_a_sync(place: Place) -> None:
    place.store.multi([Create("/a", b"0")])
    _, other = place.client()
    values: list[tuple[bytes, bytes]] = []

    def read() -> None:
        for number in range(1, 50):
            other.multi([Set("/a", str(number).encode())])
            before = place.store.get("/a")
            place.store.sync()
            after = place.store.get("/a")
            assert before is not None and after is not None
            values.append((before.data, after.data))

    async def run() -> None:
        await place.loop.run_in_executor(None, read)

    place.loop.run_until_complete(place.loop.create_task(run(), context=place.process.context()))
    assert [after for _, after in values] == [str(number).encode() for number in range(1, 50)]
    assert any(before != after for before, after in values)


def test_a_call_survives_an_outage_that_is_over_before_anybody_notices(place: Place) -> None:
    async def write() -> list[int]:
        writing = place.loop.run_in_executor(None, place.store.multi, [Create("/a")])
        place.ensemble.is_up = False
        await asyncio.sleep(1)
        place.ensemble.return_to_service()
        return await writing

    assert place.loop.run_until_complete(place.loop.create_task(write(), context=place.process.context())) == [0]
    assert place.heard == []


def test_what_changed_while_one_was_cut_off_is_seen_by_whoever_reads_when_told_of_it(place: Place) -> None:
    for round_ in range(20):
        place.store.multi([Create(f"/{round_}")])
        seen: list[object] = []
        cancel = place.store.watch("/", lambda path: seen.append(place.store.get("/there")))  # noqa: B023
        place.is_linked = False
        place.pass_time(TIMEOUT_S * 0.8)
        place.ensemble.apply([Create("/there")], None)
        place.is_linked = True
        place.pass_time(1)
        assert seen and seen[-1] is not None
        cancel()
        place.store.multi([Delete("/there")])
