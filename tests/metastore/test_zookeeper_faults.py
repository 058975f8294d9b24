"""Connections that break, servers that die or hang, sessions that end: what a store in ZooKeeper makes of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from kazoo.client import KazooClient

from ottla.metastore.port import Check, Create, Delete, Node, SessionState, Set, StoreConflict, StoreUnavailable
from ottla.metastore.zookeeper import open_zookeeper
from ottla.metastore.zookeeper.store import ZookeeperStore
from tests.metastore.waiting import until
from tests.support.zookeeper import Zookeeper
from tests.support.zookeeper_link import MULTI, ZookeeperLink

CONNECTED, SUSPENDED, LOST = SessionState.CONNECTED, SessionState.SUSPENDED, SessionState.LOST
# A session that survives whatever a test does, and one whose end a test waits for.
LONG_MS, SHORT_MS = 60_000, 2_500

Open = Callable[..., ZookeeperStore]


@pytest.fixture
def link(zookeeper: Zookeeper) -> Iterator[ZookeeperLink]:
    with ZookeeperLink(zookeeper.port) as opened:
        yield opened


@pytest.fixture
def opened() -> Iterator[list[ZookeeperStore]]:
    stores: list[ZookeeperStore] = []
    yield stores
    for store in stores:
        store.close()


@pytest.fixture
def open_through(zookeeper: Zookeeper, link: ZookeeperLink, chroot: str, opened: list[ZookeeperStore]) -> Open:
    """A store whose connection goes through the link."""

    def open_one(session_ms: int = LONG_MS) -> ZookeeperStore:
        opened.append(open_zookeeper(zookeeper.options(chroot, servers=link.address, session_timeout_ms=session_ms)))
        return opened[-1]

    return open_one


@pytest.fixture
def other(zookeeper: Zookeeper, chroot: str, opened: list[ZookeeperStore]) -> ZookeeperStore:
    """A second client of the same cluster, with a good connection."""
    opened.append(open_zookeeper(zookeeper.options(chroot, session_timeout_ms=LONG_MS)))
    return opened[-1]


def session_id(store: ZookeeperStore) -> int:
    assert store._session is not None
    return int(store._session.client.client_id[0])


def states_of(store: ZookeeperStore) -> list[SessionState]:
    heard: list[SessionState] = []
    store.on_session(heard.append)
    return heard


# --- within the session


def test_after_a_cut_the_session_goes_on_and_missed_changes_are_told(
    open_through: Open, link: ZookeeperLink, other: ZookeeperStore
) -> None:
    store = open_through()
    store.multi([Create("/ids"), Create("/ids/1", ephemeral=True), Create("/topics")])
    states, heard = states_of(store), list[str]()
    store.watch("/topics", heard.append)
    before = session_id(store)
    link.block()
    until(lambda: states == [SUSPENDED])
    other.multi([Create("/topics/missed")])
    link.restore()
    until(lambda: heard == ["/topics"])
    assert states == [SUSPENDED, CONNECTED]
    assert session_id(store) == before
    assert store.children("/ids") == ["1"]
    other.multi([Create("/topics/seen")])
    until(lambda: heard == ["/topics", "/topics/seen"])


def test_a_call_waits_for_the_connection_while_the_session_lives(open_through: Open, link: ZookeeperLink) -> None:
    store = open_through()
    states = states_of(store)
    link.block()
    until(lambda: states == [SUSPENDED])
    with ThreadPoolExecutor(2) as threads:
        written = threads.submit(store.multi, [Create("/a", b"1")])
        read = threads.submit(store.children, "/")
        link.restore()
        assert written.result(60) == [0]
        assert read.result(60) in ([], ["a"])


def test_reads_whose_connection_breaks_are_made_again(open_through: Open, link: ZookeeperLink) -> None:
    store = open_through()
    paths = [f"/{number}" for number in range(500)]
    store.multi([Create(path, path.encode()) for path in paths])
    expected = [Node(path.encode(), 0) for path in paths]
    before = link.connections
    reading = True

    def cut_again_and_again() -> None:
        while reading:
            link.cut()
            threading.Event().wait(0.2)

    with ThreadPoolExecutor(1) as threads:
        cutting = threads.submit(cut_again_and_again)
        try:
            until(lambda: store.get_many(paths) == expected and link.connections > before + 3)
        finally:
            reading = False
        cutting.result(60)
    store.sync()


def test_a_change_whose_answer_is_lost_is_unknown_and_was_made_once(open_through: Open, link: ZookeeperLink) -> None:
    store = open_through()
    store.multi([Create("/a", b"old")])
    link.lose_answer(MULTI)
    with pytest.raises(StoreUnavailable):
        store.multi([Set("/a", b"new")])
    assert store.get("/a") == Node(b"new", 1)


def test_a_change_that_is_lost_is_unknown_and_was_not_made(open_through: Open, link: ZookeeperLink) -> None:
    store = open_through()
    store.multi([Create("/a", b"old")])
    link.lose_request(MULTI)
    with pytest.raises(StoreUnavailable):
        store.multi([Set("/a", b"new")])
    assert store.get("/a") == Node(b"old", 0)
    assert store.multi([Set("/a", b"new")]) == [1]


def test_who_comes_while_there_is_no_connection_is_told_when_there_is_one(
    open_through: Open, link: ZookeeperLink, other: ZookeeperStore
) -> None:
    store = open_through()
    first = states_of(store)
    link.block()
    until(lambda: first == [SUSPENDED])
    second, heard = states_of(store), list[str]()
    store.watch("/t", heard.append)
    until(lambda: second == [SUSPENDED])
    link.restore()
    until(lambda: heard == ["/t"])
    assert first == second == [SUSPENDED, CONNECTED]
    other.multi([Create("/t")])
    until(lambda: heard == ["/t", "/t"])


def test_a_watch_hears_what_others_do_in_their_order(open_through: Open, other: ZookeeperStore) -> None:
    store = open_through()
    store.multi([Create("/t")])
    heard: list[str] = []
    store.watch("/t", heard.append)
    expected = []
    for number in range(50):
        folder, child = f"/t/{number}", f"/t/{number}/child"
        other.multi([Create(folder), Create(child), Set(folder, b"1"), Delete(child)])
        expected += [folder, child, folder, child]
    until(lambda: len(heard) >= len(expected))
    assert heard == expected


def test_two_clients_never_overwrite_one_another(open_through: Open, other: ZookeeperStore) -> None:
    store = open_through()
    store.multi([Create("/counter", b"0"), Create("/log")])

    def count(client: ZookeeperStore) -> None:
        added = 0
        while added < 25:
            node = client.get("/counter")
            assert node is not None
            number = int(node.data)
            try:
                client.multi([Set("/counter", b"%d" % (number + 1), node.version), Create(f"/log/{number}")])
                added += 1
            except StoreConflict as conflict:
                assert conflict.index == 0

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(count, (store, other)))
    store.sync()
    assert store.get("/counter") == Node(b"50", 50)
    assert len(store.children("/log")) == 50


def test_a_server_that_hangs_is_left_for_another_within_the_session(
    zookeeper: Zookeeper, chroot: str, link: ZookeeperLink, opened: list[ZookeeperStore]
) -> None:
    """kazoo does not notice while requests are sent, and waits for long at a server that takes connections only."""
    with ZookeeperLink(zookeeper.port) as second:
        servers = f"{link.address},{second.address}"
        store = open_zookeeper(zookeeper.options(chroot, servers=servers, session_timeout_ms=12_000))
        opened.append(store)
        states, before = states_of(store), session_id(store)
        assert store._session is not None
        client = store._session.client
        (link if link.connections else second).silence()

        def is_connected_again() -> bool:
            client.exists_async("/")
            return states[-1:] == [CONNECTED]

        until(is_connected_again)
        assert states == [SUSPENDED, CONNECTED]
        assert session_id(store) == before
        store.close()


def test_a_server_that_was_killed_has_everything_when_it_is_back(own_zookeeper: Zookeeper) -> None:
    store = open_zookeeper(own_zookeeper.options("/c", session_timeout_ms=LONG_MS))
    states = states_of(store)
    store.multi([Create("/ids"), Create("/ids/1", ephemeral=True), Create("/a", b"1")])
    own_zookeeper.kill()
    until(lambda: states == [SUSPENDED])
    own_zookeeper.start()
    until(lambda: states == [SUSPENDED, CONNECTED])
    assert store.get_many(["/a", "/ids/1"]) == [Node(b"1", 0), Node(b"", 0)]
    assert store.multi([Set("/a", b"2", 0)]) == [1]
    store.close()


# --- the end of a session


def test_a_server_that_hangs_for_longer_than_the_session_loses_it(own_zookeeper: Zookeeper) -> None:
    """Nobody can tell us, so our own timer must; and what we held is gone when there is a session again."""
    store = open_zookeeper(own_zookeeper.options("/c", session_timeout_ms=SHORT_MS))
    states = states_of(store)
    store.multi([Create("/ids"), Create("/ids/1", ephemeral=True)])
    held_at_connected: list[list[str]] = []
    store.on_session(lambda state: held_at_connected.append(store.children("/ids")) if state is CONNECTED else None)
    before = session_id(store)
    own_zookeeper.pause()
    until(lambda: LOST in states)
    with pytest.raises(StoreUnavailable, match="without a session"):
        store.get("/ids")
    own_zookeeper.resume()
    until(lambda: bool(held_at_connected))
    assert states[-2:] == [LOST, CONNECTED]
    assert session_id(store) != before
    assert held_at_connected == [[]]
    store.multi([Create("/ids/1", ephemeral=True)])
    store.close()


def test_a_server_that_did_not_hear_our_goodbye_is_told_again(own_zookeeper: Zookeeper) -> None:
    """As a server does that hung: it closes the connection that it is said on for one that we have given up."""
    store = open_zookeeper(own_zookeeper.options("/c", session_timeout_ms=SHORT_MS))
    store.multi([Create("/ids"), Create("/ids/1", ephemeral=True)])
    held_at_connected: list[list[str]] = []
    store.on_session(lambda state: held_at_connected.append(store.children("/ids")) if state is CONNECTED else None)
    before, session = session_id(store), store._session
    assert session is not None
    client = session.client

    def unheard() -> None:
        client._stopped.set()
        session._connection.cut()
        client._safe_close()

    client.stop = unheard
    own_zookeeper.pause()
    until(lambda: store._session is None)
    own_zookeeper.resume()
    until(lambda: bool(held_at_connected))
    assert held_at_connected == [[]]
    assert session_id(store) != before
    store.multi([Create("/ids/1", ephemeral=True)])
    store.close()


def test_who_is_cut_off_knows_that_the_session_is_over(
    open_through: Open, link: ZookeeperLink, other: ZookeeperStore
) -> None:
    store = open_through(SHORT_MS)
    states, heard = states_of(store), list[str]()
    store.multi([Create("/ids"), Create("/ids/1", ephemeral=True)])
    store.watch("/ids", heard.append)
    link.silence()
    until(lambda: states[-1:] == [LOST])
    until(lambda: other.children("/ids") == [])
    link.restore()
    until(lambda: states[-1:] == [CONNECTED])
    assert LOST in states
    until(lambda: heard == ["/ids"])
    other.multi([Create("/ids/2")])
    until(lambda: heard == ["/ids", "/ids/2"])


def test_a_change_is_never_carried_into_the_next_session(
    open_through: Open, link: ZookeeperLink, other: ZookeeperStore
) -> None:
    store = open_through(SHORT_MS)
    states = states_of(store)
    link.block()
    until(lambda: states == [SUSPENDED])
    with ThreadPoolExecutor(8) as threads:
        waiting: list[Future[list[int]]] = [
            threads.submit(store.multi, [Create(f"/{number}", ephemeral=True)]) for number in range(8)
        ]
        for change in waiting:
            with pytest.raises(StoreUnavailable):
                change.result(60)
    until(lambda: states[-1] is LOST)
    link.restore()
    until(lambda: states[-1] is CONNECTED)
    assert store.children("/") == []


def test_an_answer_that_comes_when_the_session_is_over_does_not_count(open_through: Open) -> None:
    store = open_through()
    session = store._session
    assert session is not None
    request = session.client.handler.async_result()
    request.set("done")
    assert session.result(request) == "done"
    session.condemn()
    with pytest.raises(StoreUnavailable, match="is over"):
        session.result(request)


def test_a_session_that_the_server_ends_is_followed_by_another(
    zookeeper: Zookeeper, open_through: Open, other: ZookeeperStore
) -> None:
    store = open_through()
    states = states_of(store)
    store.multi([Create("/ids"), Create("/ids/1", ephemeral=True)])
    before = session_id(store)
    assert store._session is not None
    usurper = KazooClient(hosts=zookeeper.address, client_id=store._session.client.client_id)
    usurper.start()
    usurper.stop()
    usurper.close()
    until(lambda: states[-1:] == [CONNECTED] and LOST in states)
    assert session_id(store) != before
    assert other.children("/ids") == []
    assert store.multi([Create("/ids/1", ephemeral=True)]) == [0]


def test_a_session_that_we_gave_up_is_ended_though_the_server_would_go_on_with_it(
    open_through: Open, other: ZookeeperStore
) -> None:
    store = open_through(SHORT_MS)
    store.multi([Create("/ids"), Create("/ids/1", ephemeral=True)])
    given_up = store._session
    assert given_up is not None
    seen: list[tuple[SessionState, bool, list[str]]] = []

    def look(state: SessionState) -> None:
        given_up._connection.timeout_s = LONG_MS / 1000
        seen.append((state, given_up.is_over, other.children("/ids")))

    store.on_session(look)
    given_up._connection.timeout_s = 0
    until(lambda: len(seen) == 2)
    assert seen == [(LOST, True, ["1"]), (CONNECTED, True, [])]


def test_all_are_told_of_the_end_before_anything_succeeds_in_the_next_session(
    open_through: Open, link: ZookeeperLink
) -> None:
    store = open_through(SHORT_MS)
    told, may_go_on = threading.Event(), threading.Event()
    refused: list[StoreUnavailable] = []

    def slow(state: SessionState) -> None:
        if state is LOST:
            try:
                store.get("/")
            except StoreUnavailable as error:
                refused.append(error)
            told.set()
            may_go_on.wait(60)

    store.on_session(slow)
    states = states_of(store)
    link.block()
    before = link.connections
    assert told.wait(60)
    assert refused
    link.restore()
    until(lambda: link.connections > before)
    for _ in range(20):
        with pytest.raises(StoreUnavailable):
            store.multi([Create("/too-early")])
        threading.Event().wait(0.05)
    may_go_on.set()
    until(lambda: states[-1:] == [CONNECTED])
    assert store.children("/") == []


def test_what_fails_in_a_callback_keeps_nobody_from_being_told(open_through: Open, link: ZookeeperLink) -> None:
    store = open_through()

    def broken(_: object) -> None:
        raise ValueError("broken")

    store.on_session(broken)
    store.watch("/", broken)
    states, heard = states_of(store), list[str]()
    store.watch("/", heard.append)
    store.multi([Create("/a")])
    until(lambda: heard == ["/a"])
    link.cut()
    until(lambda: states == [SUSPENDED, CONNECTED])


# --- closing


@pytest.mark.parametrize("how", ["connected", "blocked", "silent", "lost"])
def test_a_store_can_be_closed_at_any_time(
    open_through: Open, link: ZookeeperLink, other: ZookeeperStore, how: str
) -> None:
    store = open_through(SHORT_MS if how in ("silent", "lost") else LONG_MS)
    states = states_of(store)
    store.multi([Create("/e", ephemeral=True)])
    if how == "blocked":
        link.block()
        until(lambda: states == [SUSPENDED])
    elif how == "silent":
        link.silence()
    elif how == "lost":
        link.block()
        until(lambda: states[-1:] == [LOST])
    store.close()
    store.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        store.multi([Check("/")])
    with pytest.raises(StoreUnavailable, match="closed"):
        store.get("/")
    assert LOST not in states or how == "lost"
    if how == "connected":
        other.sync()
        assert other.get("/e") is None


def test_closing_leaves_no_thread(zookeeper: Zookeeper, chroot: str) -> None:
    before = set(threading.enumerate())
    open_zookeeper(zookeeper.options(chroot)).close()
    until(lambda: set(threading.enumerate()) <= before)
