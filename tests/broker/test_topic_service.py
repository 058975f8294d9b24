"""Changes of topics: durable before they are seen, whole or not at all, one after another."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

import pytest

from ottla.broker.controller import controller_epoch, metadata_changes
from ottla.broker.controller.topic_service import TopicService
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import TopicId, TopicPartition
from ottla.controller import topic_plan
from ottla.controller.placement import Placement
from ottla.controller.rules import Rules
from ottla.controller.topic_plan import NewPartitions, NewTopic
from ottla.metadata import nodes
from ottla.metadata.image import ClusterImage, ConfigKind, TopicImage
from ottla.metastore import port, stored_image
from ottla.metastore.embedded import EmbeddedStore
from ottla.metastore.port import Check, Operation, Set, StoreConflict, StoreUnavailable
from ottla.storage.log_config import LogConfig
from tests.support.loop_broker import LoopBroker


class NoCheckpoints:
    def names_any_deleted(self, partitions: Iterable[TopicPartition]) -> bool:
        return False

    def in_steps(self) -> Generator[None, None, list[Future[None]]]:
        raise NotImplementedError


class FakeLogs:
    """Remembers which logs there are; `fail_at` is the partition whose disk is full."""

    def __init__(self) -> None:
        self.made: dict[TopicPartition, TopicId] = {}
        self.unmade: dict[TopicPartition, TopicId] = {}
        self.fail_at: TopicPartition | None = None
        self.checkpointing = NoCheckpoints()

    def create(self, tp: TopicPartition, topic_id: TopicId, config: LogConfig) -> object:
        if tp == self.fail_at:
            raise OSError(28, "No space left on device")
        self.made[tp] = topic_id
        return object()

    def delete(self, tp: TopicPartition) -> object:
        return self.made.pop(tp, None)

    def get(self, tp: TopicPartition) -> object | None:
        return self.made.get(tp)

    def store_failed(self, error: Exception, *, is_full: bool) -> None:
        pass


class AnyConfigs:
    def check_topic(self, configs: Mapping[str, str | None]) -> Mapping[str, str]:
        if "wrong" in configs:
            raise ApiError(ErrorCode.INVALID_CONFIG, "wrong is wrong")
        return {name: value for name, value in configs.items() if value is not None}

    def log_config(self, overrides: Mapping[str, str]) -> LogConfig:
        return LogConfig()


class SlowStore(EmbeddedStore):
    """Holds a commit back until `go` is set, or fails it."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.go = threading.Event()
        self.go.set()
        self.broken = False

    def multi(self, operations: list[Operation], *, urgent: bool = False) -> list[int]:  # type: ignore[override]
        self.go.wait(10)
        if self.broken:
            raise StoreUnavailable("the disk is gone")
        return super().multi(operations, urgent=urgent)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SlowStore]:
    opened = SlowStore(tmp_path / "store.sqlite")
    stored_image.initialise(opened, "cluster")
    yield opened
    opened.close()


@pytest.fixture
def logs() -> FakeLogs:
    return FakeLogs()


@pytest.fixture
async def topics(store: SlowStore, logs: FakeLogs) -> TopicService:
    return TopicService(
        store=store,
        image=stored_image.load_image(store),
        epoch=controller_epoch.elect(store, 1),
        logs=logs,
        configs=AnyConfigs(),
        placement=lambda _: Placement([1], 2, 1),
        node_id=1,
        rules=Rules(lambda _: 1, lambda _: False),
        internal_topic=lambda name: NewTopic(name, 4, 1, configs={"cleanup.policy": "compact"}),
    )


def code_of(outcome: TopicImage | ApiError) -> ErrorCode:
    assert isinstance(outcome, ApiError)
    return outcome.code


async def test_a_created_topic_has_its_logs_and_is_in_the_store(
    topics: TopicService, logs: FakeLogs, store: SlowStore
) -> None:
    created = await topics.create_one(NewTopic("orders", 3, 1, configs={"retention.ms": "1"}))
    assert topics.image.topics["orders"] is created
    assert topics.image.topics_by_id[created.id] is created
    assert logs.made == {TopicPartition("orders", index): created.id for index in range(3)}
    assert stored_image.load_image(store).topics["orders"] == created


async def test_defaults_fill_what_a_request_leaves_open(topics: TopicService) -> None:
    created = await topics.create_one(NewTopic("orders"))
    assert [one.replicas for one in created.partitions] == [(1,), (1,)]


async def test_many_small_topics_of_one_request_are_spread(topics: TopicService) -> None:
    topics._placement = lambda _: Placement([1, 2, 3], 1, 1)
    created = await topics.create([NewTopic(f"t-{number}") for number in range(6)])
    leaders = [topic.partitions[0].leader for topic in created if isinstance(topic, TopicImage)]
    assert sorted(leaders) == [1, 1, 2, 2, 3, 3]


async def test_a_change_that_is_half_made_is_read_back_before_the_next(
    topics: TopicService, store: SlowStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What does not fit into one step: the first one is in the store, the second one is refused."""
    created = await topics.create_one(NewTopic("a", 1, 1))
    changed = replace(created, partitions=(replace(created.partitions[0], leader_epoch=7, partition_epoch=7),))
    monkeypatch.setattr(topics, "_is_clustered", True)
    monkeypatch.setattr(port, "MULTI_BYTES_MAX", 1)
    path = nodes.topic_path("a")
    with pytest.raises(StoreConflict):
        await topics.change(topics.commit_and_adopt([Set(path, nodes.encode_topic(changed)), Check("/nobody", 0)]))

    async def plan() -> int:
        return topics.image.topics["a"].partitions[0].leader_epoch

    assert await topics.change(plan()) == 7


async def test_one_bad_topic_does_not_touch_the_others(topics: TopicService) -> None:
    outcomes = await topics.create(
        [NewTopic("a"), NewTopic("b", 0), NewTopic("c", configs={"wrong": "1"}), NewTopic("d")]
    )
    assert [isinstance(one, TopicImage) for one in outcomes] == [True, False, False, True]
    assert code_of(outcomes[1]) is ErrorCode.INVALID_PARTITIONS
    assert code_of(outcomes[2]) is ErrorCode.INVALID_CONFIG
    assert list(topics.image.topics) == ["a", "d"]


@pytest.mark.parametrize(
    ("topic", "code"),
    [
        (NewTopic("there"), ErrorCode.TOPIC_ALREADY_EXISTS),
        (NewTopic("the.re_"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic("../x"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (NewTopic("__cluster_metadata"), ErrorCode.INVALID_REQUEST),
        (NewTopic("x", -2), ErrorCode.INVALID_PARTITIONS),
        (NewTopic("x", 1, 0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (NewTopic("x", 1, 2), ErrorCode.INVALID_REPLICATION_FACTOR),
        (NewTopic("x", 1, assignments=[(0, [1])]), ErrorCode.INVALID_REQUEST),
        (NewTopic("x", assignments=[(1, [1])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("x", assignments=[(0, [1]), (0, [1])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("x", assignments=[(0, [2])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("x", assignments=[(0, [])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
async def test_what_cannot_be_created(topics: TopicService, topic: NewTopic, code: ErrorCode) -> None:
    await topics.create([NewTopic("there"), NewTopic("the_re.")])
    assert code_of((await topics.create([topic]))[0]) is code


async def test_a_million_partitions_are_refused_before_anything_is_built(topics: TopicService) -> None:
    for topic in (NewTopic("x", 1_000_000, 1), NewTopic("x", topic_plan.PARTITIONS_PER_REQUEST_MAX + 1, 1)):
        with pytest.raises(ApiError) as refused:
            await topics.create([topic])
        assert refused.value.code is ErrorCode.POLICY_VIOLATION


async def test_a_request_that_only_validates_changes_nothing(
    topics: TopicService, logs: FakeLogs, store: SlowStore
) -> None:
    outcome = (await topics.create([NewTopic("a", 1, 1)], validate_only=True))[0]
    assert isinstance(outcome, TopicImage)
    assert not topics.image.topics
    assert not logs.made
    assert store.children(nodes.TOPICS) == []


async def test_a_full_disk_leaves_no_half_made_topic(topics: TopicService, logs: FakeLogs, store: SlowStore) -> None:
    logs.fail_at = TopicPartition("a", 2)
    with pytest.raises(ApiError) as failed:
        await topics.create([NewTopic("a", 4, 1)])
    assert failed.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert not topics.image.topics
    assert not logs.made
    assert store.children(nodes.TOPICS) == []
    logs.fail_at = None
    assert isinstance((await topics.create([NewTopic("a", 4, 1)]))[0], TopicImage)


async def test_a_store_that_fails_leaves_everything_as_it_was(
    topics: TopicService, logs: FakeLogs, store: SlowStore
) -> None:
    store.broken = True
    with pytest.raises(ApiError) as failed:
        await topics.create([NewTopic("a")])
    assert failed.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert not topics.image.topics
    assert not logs.made


async def test_nobody_sees_a_topic_before_it_is_durable(topics: TopicService, store: SlowStore) -> None:
    store.go.clear()
    creation = asyncio.create_task(topics.create([NewTopic("a")]))
    await asyncio.sleep(0.02)
    assert not topics.image.topics
    store.go.set()
    await creation
    assert "a" in topics.image.topics


async def test_a_change_goes_on_when_its_client_has_gone(topics: TopicService, store: SlowStore) -> None:
    store.go.clear()
    creation = asyncio.create_task(topics.create([NewTopic("a")]))
    await asyncio.sleep(0.02)
    creation.cancel()
    with pytest.raises(asyncio.CancelledError):
        await creation
    store.go.set()
    await topics.close()
    assert "a" in topics.image.topics


async def test_clients_that_ask_for_the_same_new_topic_get_the_same_one(topics: TopicService) -> None:
    found = await asyncio.gather(*(topics.auto_create("a") for _ in range(20)))
    assert len({one.id for one in found}) == 1


async def test_an_internal_topic_is_made_with_its_own_settings(topics: TopicService) -> None:
    made = await topics.auto_create("__consumer_offsets")
    assert len(made.partitions) == 4
    assert made.configs == {"cleanup.policy": "compact"}
    assert await topics.ensure_internal("__consumer_offsets") is made


async def test_a_deleted_topic_takes_its_logs_with_it(topics: TopicService, logs: FakeLogs, store: SlowStore) -> None:
    await topics.create([NewTopic("a"), NewTopic("b"), NewTopic("gone")])
    await topics.delete([gone := topics.image.topics["gone"]])
    outcomes = await topics.delete([topics.image.topics["a"], gone])
    assert isinstance(outcomes[0], TopicImage)
    assert code_of(outcomes[1]) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert list(topics.image.topics) == ["b"]
    assert {tp.topic for tp in logs.made} == {"b"}
    assert store.children(nodes.TOPICS) == ["b"]
    assert store.children(nodes.DELETIONS) == []


async def test_logs_that_cannot_be_removed_are_left_for_the_next_start(
    topics: TopicService, logs: FakeLogs, store: SlowStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = await topics.create_one(NewTopic("a"))

    def broken(tp: TopicPartition) -> object:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(logs, "delete", broken)
    assert isinstance((await topics.delete([topics.image.topics["a"]]))[0], TopicImage)
    assert not topics.image.topics
    assert store.children(nodes.DELETIONS) == [nodes.deletion_path(topic.id).rsplit("/", 1)[1]]


async def test_a_topic_that_is_made_again_has_another_id(topics: TopicService) -> None:
    first = await topics.create_one(NewTopic("a"))
    await topics.delete([topics.image.topics["a"]])
    assert (await topics.create_one(NewTopic("a"))).id != first.id


async def test_more_partitions(topics: TopicService, logs: FakeLogs, store: SlowStore) -> None:
    created = await topics.create_one(NewTopic("a", 2, 1))
    outcome = (await topics.create_partitions([NewPartitions("a", 5)]))[0]
    assert isinstance(outcome, TopicImage)
    assert outcome.id == created.id
    assert len(topics.image.topics["a"].partitions) == 5
    assert len(logs.made) == 5
    assert len(stored_image.load_image(store).topics["a"].partitions) == 5


async def test_more_partitions_on_a_full_disk_leave_the_topic_as_it_was(topics: TopicService, logs: FakeLogs) -> None:
    await topics.create_one(NewTopic("a", 2, 1))
    logs.fail_at = TopicPartition("a", 4)
    with pytest.raises(ApiError):
        await topics.create_partitions([NewPartitions("a", 6)])
    assert len(topics.image.topics["a"].partitions) == 2
    assert len(logs.made) == 2


async def test_settings_are_replaced_and_survive(topics: TopicService, store: SlowStore) -> None:
    await topics.create_one(NewTopic("a"))
    await topics.set_topic_configs("a", {"retention.ms": "5"})
    await topics.set_configs(ConfigKind.BROKER, "", {"log.retention.ms": "6"})
    await topics.set_configs(ConfigKind.BROKER, "1", {"log.retention.ms": "7"})
    await topics.set_configs(ConfigKind.GROUP, "g/.", {"consumer.session.timeout.ms": "8"})
    await topics.set_features({"group.version": 1})
    assert stored_image.load_image(store) == topics.image
    await topics.set_configs(ConfigKind.BROKER, "1", {})
    await topics.set_configs(ConfigKind.GROUP, "g/.", {})
    await topics.set_configs(ConfigKind.GROUP, "never", {})
    assert topics.image.broker_configs == {"": {"log.retention.ms": "6"}}
    assert topics.image.group_configs == {}
    assert stored_image.load_image(store) == topics.image
    with pytest.raises(ApiError):
        await topics.set_topic_configs("missing", {})


async def test_listeners_hear_each_change_in_order(topics: TopicService) -> None:
    heard: list[tuple[list[str], list[str]]] = []
    topics.subscribe(lambda old, new: heard.append((list(old.topics), list(new.topics))))
    await topics.create_one(NewTopic("a"))
    await topics.create_one(NewTopic("b"))
    await topics.delete([topics.image.topics["a"]])
    assert heard == [([], ["a"]), (["a"], ["a", "b"]), (["a", "b"], ["b"])]


async def test_producer_ids_are_never_taken_twice(
    topics: TopicService, store: SlowStore, make_again: Callable[[], TopicService]
) -> None:
    firsts = [await topics.take_producer_ids(1000) for _ in range(3)]
    firsts.append(await make_again().take_producer_ids(1000))
    assert firsts == [0, 1000, 2000, 3000]


@pytest.fixture
async def make_again(store: SlowStore, logs: FakeLogs) -> Callable[[], TopicService]:
    """The service as it would be after a restart."""

    def make() -> TopicService:
        return TopicService(
            store=store,
            image=stored_image.load_image(store),
            epoch=controller_epoch.elect(store, 1),
            logs=logs,
            configs=AnyConfigs(),
            placement=lambda _: Placement([1], 2, 1),
            node_id=1,
            rules=Rules(lambda _: 1, lambda _: False),
            internal_topic=NewTopic,
        )

    return make


async def test_a_controller_that_was_replaced_changes_nothing(
    topics: TopicService, make_again: Callable[[], TopicService]
) -> None:
    await topics.create_one(NewTopic("before"))
    new = make_again()
    with pytest.raises(ApiError) as refused:
        await topics.create_one(NewTopic("late"))
    assert refused.value.code is ErrorCode.NOT_CONTROLLER
    assert list(topics.image.topics) == ["before"]
    await new.create_one(NewTopic("after"))
    assert sorted(make_again().image.topics) == ["after", "before"]


async def test_a_listener_that_failed_is_told_again_what_it_missed(
    topics: TopicService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metadata_changes, "_TELL_AGAIN_S", 0.01)
    told: list[tuple[list[str], list[str]]] = []
    is_broken = True

    def now_and_then(old: ClusterImage, new: ClusterImage) -> None:
        if is_broken:
            raise OSError("the disk is gone for a moment")
        told.append((list(old.topics), list(new.topics)))

    topics.subscribe(now_and_then)
    await topics.create_one(NewTopic("a"))
    await topics.create_one(NewTopic("b"))
    is_broken = False
    while not told:
        await asyncio.sleep(0.001)
    assert told == [([], ["a", "b"])]
    await topics.create_one(NewTopic("c"))
    assert told[1:] == [(["a", "b"], ["a", "b", "c"])]
    await topics.close()


async def test_who_fails_on_a_change_keeps_those_behind_it_from_going_on(topics: TopicService) -> None:
    """They stand on it: a group may not meet partitions that are not there."""
    told: list[str] = []
    failures = [RuntimeError("once")]

    def first(_old: ClusterImage, _new: ClusterImage) -> None:
        if failures:
            raise failures.pop()
        told.append("first")

    topics.subscribe(first)
    topics.subscribe(lambda _old, _new: told.append("second"))
    await topics.create_one(NewTopic("a"))
    assert told == []
    while len(told) < 2:
        await asyncio.sleep(0.001)
    assert told == ["first", "second"]
    await topics.close()


async def test_who_stands_on_no_other_is_told_although_others_fail(topics: TopicService) -> None:
    """As the controller: the cluster needs it, whatever this broker cannot do for itself."""
    told: list[str] = []

    def broken(_old: ClusterImage, _new: ClusterImage) -> None:
        raise RuntimeError("always")

    topics.subscribe(broken)
    topics.subscribe(lambda _old, new: told.extend(new.topics), first=True)
    await topics.create_one(NewTopic("a"))
    assert told == ["a"]
    await topics.close()


async def test_a_topic_whose_log_is_missing_for_a_moment_is_served_when_it_is_there(tmp_path: Path) -> None:
    """And its neighbours at once."""
    async with LoopBroker(tmp_path) as broker:
        logs, service = broker.broker.logs, broker.broker.topics
        get, missing = logs.get, {TopicPartition("b", 0)}
        logs.get = lambda tp: None if tp in missing else get(tp)  # type: ignore[method-assign]
        await service.create([NewTopic("a", 1), NewTopic("b", 1), NewTopic("c", 1)])
        partitions = broker.broker.partitions
        first = partitions.get("a", 0)
        assert (first is not None, partitions.get("b", 0), partitions.get("c", 0) is not None) == (True, None, True)
        missing.clear()
        service._tell_again()
        assert partitions.get("b", 0) is not None
        assert partitions.get("a", 0) is first, "who was there stays, with those who wait for it"
