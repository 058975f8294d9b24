"""What every MetadataStore must do, whatever is behind it.

A test module for one implementation makes a subclass and says how to open a store, twice for the same place:

    class TestEmbedded(StoreConformance):
        @pytest.fixture
        def open_store(self, tmp_path): return lambda: EmbeddedStore(tmp_path / "store")
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from ottla.metastore.port import (
    MULTI_BYTES_MAX,
    NODE_BYTES_MAX,
    Check,
    Conflict,
    Create,
    Delete,
    MetadataStore,
    Node,
    Operation,
    SessionState,
    Set,
    StoreConflict,
    in_multis,
    operation_bytes,
)

OpenStore = Callable[[], MetadataStore]


class StoreConformance:
    @pytest.fixture
    def store(self, open_store: OpenStore) -> Iterator[MetadataStore]:
        opened = open_store()
        yield opened
        opened.close()

    def test_a_new_store_has_only_its_root(self, store: MetadataStore) -> None:
        assert store.get("/") is not None
        assert store.children("/") == []
        assert store.get("/a") is None

    def test_a_created_node_is_read_back_with_version_zero(self, store: MetadataStore) -> None:
        assert store.multi([Create("/a", b"one")]) == [0]
        assert store.get("/a") == Node(b"one", 0)

    def test_each_set_raises_the_version_by_one(self, store: MetadataStore) -> None:
        store.multi([Create("/a", b"one")])
        assert store.multi([Set("/a", b"two")]) == [1]
        assert store.multi([Set("/a", b"three", 1)]) == [2]
        assert store.get("/a") == Node(b"three", 2)

    def test_a_node_that_was_deleted_and_made_again_starts_at_version_zero(self, store: MetadataStore) -> None:
        store.multi([Create("/a", b"one")])
        store.multi([Set("/a", b"two")])
        assert store.multi([Delete("/a")]) == [-1]
        assert store.get("/a") is None
        assert store.multi([Create("/a", b"three")]) == [0]

    def test_children_are_names_of_the_level_below_in_order(self, store: MetadataStore) -> None:
        store.multi([Create("/t"), Create("/t/b"), Create("/t/a"), Create("/t/a/deep"), Create("/tx")])
        assert store.children("/t") == ["a", "b"]
        assert store.children("/") == ["t", "tx"]
        assert store.children("/t/b") == []
        assert store.children("/missing") == []

    def test_get_many_answers_in_the_order_asked(self, store: MetadataStore) -> None:
        store.multi([Create("/a", b"1"), Create("/b", b"2")])
        assert store.get_many(["/b", "/missing", "/a"]) == [Node(b"2", 0), None, Node(b"1", 0)]

    def test_operations_of_one_multi_see_those_before(self, store: MetadataStore) -> None:
        versions = store.multi([Create("/t"), Create("/t/a", b"1"), Set("/t/a", b"2", 0), Check("/t/a", 1)])
        assert versions == [0, 0, 1, 1]
        assert store.multi([Check("/t/a"), Set("/t/a", b"3")]) == [-1, 2]
        assert store.multi([Delete("/t/a"), Delete("/t")]) == [-1, -1]

    def test_an_empty_multi_does_nothing(self, store: MetadataStore) -> None:
        assert store.multi([]) == []

    @pytest.mark.parametrize(
        ("operation", "reason"),
        [
            (Create("/a"), Conflict.NODE_EXISTS),
            (Create("/missing/child"), Conflict.NO_NODE),
            (Set("/missing", b""), Conflict.NO_NODE),
            (Set("/a", b"", 7), Conflict.BAD_VERSION),
            (Delete("/missing"), Conflict.NO_NODE),
            (Delete("/a", 7), Conflict.BAD_VERSION),
            (Delete("/full"), Conflict.NOT_EMPTY),
            (Check("/missing"), Conflict.NO_NODE),
            (Check("/a", 1), Conflict.BAD_VERSION),
        ],
    )
    def test_what_does_not_fit_is_refused_and_nothing_changes(
        self, store: MetadataStore, operation: Operation, reason: Conflict
    ) -> None:
        store.multi([Create("/a", b"old"), Create("/full"), Create("/full/child")])
        with pytest.raises(StoreConflict) as refused:
            store.multi([operation])
        assert refused.value.reason is reason
        assert refused.value.operation == operation
        assert store.get("/a") == Node(b"old", 0)

    def test_a_refused_multi_leaves_no_trace_of_its_other_operations(self, store: MetadataStore) -> None:
        store.multi([Create("/a", b"old")])
        with pytest.raises(StoreConflict) as refused:
            store.multi([Create("/b"), Set("/a", b"new"), Check("/a", 0), Create("/c")])
        assert refused.value.index == 2
        assert store.get("/a") == Node(b"old", 0)
        assert store.children("/") == ["a"]

    @pytest.mark.parametrize("path", ["", "a", "/a/", "//", "/a//b", "/.", "/a/..", "/a\0b", "/a\x1fb", "/\ue000"])
    def test_what_is_not_a_path_is_refused(self, store: MetadataStore, path: str) -> None:
        with pytest.raises(ValueError, match="not a path"):
            store.get(path)
        with pytest.raises(ValueError, match="not a path"):
            store.multi([Create(path)])

    def test_a_node_has_a_largest_size(self, store: MetadataStore) -> None:
        store.multi([Create("/a", b"x" * NODE_BYTES_MAX)])
        with pytest.raises(ValueError, match="more than one node may hold"):
            store.multi([Set("/a", b"x" * (NODE_BYTES_MAX + 1))])

    def test_a_multi_may_be_as_large_as_the_port_says(self, store: MetadataStore) -> None:
        size = operation_bytes(Create("/00000", b"x" * 40))
        operations = [Create(f"/{number:05}", b"x" * 40) for number in range(MULTI_BYTES_MAX // size)]
        assert list(in_multis(operations)) == [operations]
        assert store.multi(operations) == [0] * len(operations)
        assert len(store.children("/")) == len(operations)

    def test_operations_that_are_more_than_one_multi_are_cut_with_their_guards(self, store: MetadataStore) -> None:
        store.multi([Create("/epoch")])
        operations = [Create(f"/{number:02}", b"x" * 100_000) for number in range(25)]
        multis = list(in_multis(operations, [Check("/epoch", 0)]))
        assert len(multis) == 3
        for multi in multis:
            assert multi[0] == Check("/epoch", 0)
            store.multi(multi)
        assert store.children("/") == [*(f"{number:02}" for number in range(25)), "epoch"]
        assert list(in_multis([], [Check("/epoch", 0)])) == []

    def test_many_nodes_are_read_in_one_go(self, store: MetadataStore) -> None:
        paths = [f"/{number:04}" for number in range(1_000)]
        store.multi([Create(path, path.encode()) for path in paths])
        assert store.get_many(paths) == [Node(path.encode(), 0) for path in paths]

    def test_names_may_hold_any_other_character(self, store: MetadataStore) -> None:
        names = sorted(["a b", "ü", "%2F", "a.b", "'; DROP TABLE node; --"])
        store.multi([Create(f"/{name}") for name in names])
        assert store.children("/") == names

    def test_what_was_written_is_there_after_opening_again(self, open_store: OpenStore) -> None:
        first = open_store()
        first.multi([Create("/a", b"one"), Create("/a/b", b"two")])
        first.multi([Set("/a", b"three")])
        first.close()
        second = open_store()
        assert second.get("/a") == Node(b"three", 1)
        assert second.children("/a") == ["b"]
        second.close()

    def test_ephemeral_nodes_go_with_their_session(self, open_store: OpenStore) -> None:
        first = open_store()
        first.multi([Create("/ids"), Create("/ids/1", b"here", ephemeral=True)])
        assert first.get("/ids/1") == Node(b"here", 0)
        first.close()
        second = open_store()
        assert second.children("/ids") == []
        second.close()

    def test_an_ephemeral_node_has_no_children(self, store: MetadataStore) -> None:
        store.multi([Create("/e", ephemeral=True)])
        with pytest.raises(StoreConflict):
            store.multi([Create("/e/child")])

    def test_a_watch_hears_of_each_change_at_and_below_its_path(self, store: MetadataStore) -> None:
        heard: list[str] = []
        store.multi([Create("/t"), Create("/tx")])
        store.watch("/t", heard.append)
        store.multi([Create("/t/a"), Set("/t", b"1"), Set("/tx", b"1"), Check("/t"), Create("/t/a/b")])
        store.multi([Delete("/t/a/b")])
        self.settle(lambda: len(heard) >= 4)
        assert heard == ["/t/a", "/t", "/t/a/b", "/t/a/b"]

    def test_a_watch_hears_nothing_of_a_refused_multi_or_after_it_was_cancelled(self, store: MetadataStore) -> None:
        heard: list[str] = []
        cancel = store.watch("/", heard.append)
        with pytest.raises(StoreConflict):
            store.multi([Create("/a"), Check("/missing")])
        cancel()
        store.multi([Create("/b")])
        assert heard == []

    def test_a_watch_may_read_the_store(self, store: MetadataStore) -> None:
        seen: list[Node | None] = []
        store.watch("/", lambda path: seen.append(store.get(path)))
        store.multi([Create("/a", b"1")])
        self.settle(lambda: bool(seen))
        assert seen == [Node(b"1", 0)]

    def test_after_a_sync_a_read_sees_what_others_wrote(self, store: MetadataStore) -> None:
        store.multi([Create("/a", b"1")])
        store.sync()
        assert store.get("/a") == Node(b"1", 0)

    def test_a_session_that_is_well_says_nothing(self, store: MetadataStore) -> None:
        heard: list[SessionState] = []
        cancel = store.on_session(heard.append)
        store.multi([Create("/a")])
        store.sync()
        cancel()
        assert heard == []

    def test_of_two_writers_that_expect_the_same_version_one_wins(self, store: MetadataStore) -> None:
        store.multi([Create("/counter", b"0")])

        def increment(_: int) -> int:
            lost = 0
            while True:
                node = store.get("/counter")
                assert node is not None
                try:
                    store.multi([Set("/counter", b"%d" % (int(node.data) + 1), node.version)])
                    return lost
                except StoreConflict:
                    lost += 1

        with ThreadPoolExecutor(4) as threads:
            list(threads.map(increment, range(40)))
        assert store.get("/counter") == Node(b"40", 40)

    def settle(self, done: Callable[[], bool]) -> None:
        """Wait until watch callbacks have run; an implementation that calls them elsewhere overrides this."""
        assert done()
