"""Groups and transactions while their coordinators are killed, with real clients: librdkafka and aiokafka speak the
classic transactions, Java's clients version 2."""

from __future__ import annotations

import itertools
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import NewTopic

from ottla.protocol.messages import DescribeTransactionsRequest, FindCoordinatorRequest
from tests.interop.foreign.agent_transactions import AgentTransactions
from tests.interop.foreign.agents import COMMANDS, Agent, Unavailable
from tests.support.patience import answered
from tests.support.raw_client import RawClient
from tests.support.transactional_libraries import (
    TRANSACTIONAL,
    ConfluentTransactions,
    Failed,
    Fenced,
    committed_offset,
    read_values,
)
from tests.support.trio import OttlaTrio, Trio, require

# On a machine that others use as well.
pytestmark = pytest.mark.timeout(900)
GROUP, TRANSACTION = 0, 1
PATIENCE_S = 120
# Of the topic that groups read.
PARTITIONS = 6
QUICK = {"zookeeper.session.timeout.ms": "3000", "replica.lag.time.max.ms": "5000"}
# A commit that meets a coordinator which dies, moves or is slow: what was read is read once more.
PASSING = {
    *("UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION", "REBALANCE_IN_PROGRESS", "STALE_MEMBER_EPOCH", "FENCED_MEMBER_EPOCH"),
    *("COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS", "REQUEST_TIMED_OUT"),
    *("_NO_OFFSET", "_STATE", "_TIMED_OUT", "_WAIT_COORD", "_TRANSPORT", "_ALL_BROKERS_DOWN", "_ASSIGNMENT_LOST"),
    *("_PREV_IN_PROGRESS", "_RETRY", "NETWORK_EXCEPTION"),
}
MakeProducer = Callable[[str], Any]

_numbers = itertools.count()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trio]:
    require(OttlaTrio)
    with OttlaTrio(tmp_path_factory.mktemp("trio"), QUICK) as made:
        yield made


@pytest.fixture
def trio(running: Trio) -> Iterator[Trio]:
    """Whole again after each test."""
    yield running
    running.make_whole()


@pytest.fixture
def name() -> str:
    return f"t{next(_numbers)}"


@pytest.fixture(scope="module")
def java(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    yield from _java(tmp_path_factory.mktemp("java") / "agent.log")


@pytest.fixture
def second_java(tmp_path: Path) -> Iterator[Agent]:
    yield from _java(tmp_path / "agent.log")


def _java(log: Path) -> Iterator[Agent]:
    try:
        agent = Agent("java", COMMANDS["java"](), log)
    except Unavailable as why:
        pytest.skip(str(why))
    yield agent
    agent.send_signal(signal.SIGCONT)
    agent.close()


@pytest.fixture(
    params=[
        "confluent-kafka",
        pytest.param("aiokafka", marks=pytest.mark.slow),
        pytest.param("java", marks=pytest.mark.jvm),
    ]
)
def producer(request: pytest.FixtureRequest, trio: Trio) -> MakeProducer:
    if request.param != "java":
        return lambda transactional_id: TRANSACTIONAL[request.param](trio.bootstrap, transactional_id)
    agent = request.getfixturevalue("java")
    return lambda transactional_id: AgentTransactions(agent, trio.bootstrap, transactional_id)


def coordinator_of(trio: Trio, kind: int, key: str) -> int:
    """The node that says so itself: everybody else has heard of it, or will."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        for number, node in trio.nodes.items():
            if node.running:
                try:
                    with RawClient.to(node.bootstrap, 5) as client:
                        request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
                        (found,) = client.call(request, 4).coordinators
                except OSError:
                    continue
                if found.node_id == number and not found.error_code:
                    return number
        time.sleep(0.05)
    raise AssertionError(f"nobody coordinates {key}")


def state_of(trio: Trio, transactional_id: str) -> str:
    node = trio.nodes[coordinator_of(trio, TRANSACTION, transactional_id)]
    with RawClient.to(node.bootstrap) as client:
        (found,) = client.call(DescribeTransactionsRequest(transactional_ids=[transactional_id]), 0).transaction_states
    return str(found.transaction_state)


def await_state(trio: Trio, transactional_id: str, wanted: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while (state := state_of(trio, transactional_id)) != wanted:
        assert time.monotonic() < deadline, f"{transactional_id} is in {state!r}\n{trio.logs()}"
        time.sleep(0.1)


# --- transactions


@pytest.mark.parametrize(
    "moment",
    [
        pytest.param("before the first record", marks=pytest.mark.slow),
        "before the end",
        pytest.param("after the end", marks=pytest.mark.slow),
    ],
)
def test_transactions_outlive_their_coordinator(trio: Trio, producer: MakeProducer, name: str, moment: str) -> None:
    """Three partitions with different leaders, and offsets of a group: all of a transaction is seen, or nothing."""
    topic = trio.create(name, 3)
    committed: list[bytes] = []
    with producer(name) as client:
        for number in range(4):
            # The second transaction meets the kill, and what follows the coordinator after it.
            victim = coordinator_of(trio, TRANSACTION, name) if number == 1 else None
            if victim is not None and moment == "before the first record":
                trio.nodes[victim].kill()
            try:
                client.begin()
                for partition in range(3):
                    client.send(topic, b"%d" % number, partition)
                client.offsets(name, {(topic, 0): number})
                if victim is not None and moment == "before the end":
                    trio.nodes[victim].kill()
                if number == 2:
                    client.abort()
                    continue
                client.commit()
                committed.append(b"%d" % number)
                if victim is not None and moment == "after the end":
                    trio.nodes[victim].kill()
            except Failed:
                client.abort()
    assert {b"0", b"3"} <= set(committed), "a kill costs no more than the transaction that it meets"
    await_state(trio, name, "CompleteCommit")
    for partition in range(3):
        assert read_values(trio.bootstrap, topic, [partition]) == committed
    assert committed_offset(trio.bootstrap, name, topic) == 3


def test_what_is_decided_is_completed_by_the_next_coordinator(trio: Trio, name: str) -> None:
    """Killed between the decision and the markers: the one partition of the transaction has no leader meanwhile."""
    ConfluentTransactions(trio.bootstrap, name).open()
    coordinator = coordinator_of(trio, TRANSACTION, name)
    holder, other = (number for number in trio.nodes if number != coordinator)
    admin = trio.admin()
    admin.create_topics([NewTopic(name, 1, replica_assignment=[[holder]])])[name].result(60)
    with ConfluentTransactions(trio.bootstrap, name) as client:
        client.begin()
        client.send(name, b"decided")
        client.flush()
        trio.nodes[holder].kill()
        client.commit()
        assert state_of(trio, name) == "PrepareCommit"
    trio.nodes[coordinator].kill()
    trio.nodes[holder].start()
    await_state(trio, name, "CompleteCommit")
    assert coordinator_of(trio, TRANSACTION, name) in (holder, other)
    assert read_values(trio.bootstrap, name) == [b"decided"]


@pytest.mark.parametrize("is_killed", [pytest.param(False, marks=pytest.mark.slow), True])
def test_a_producer_that_was_replaced_is_fenced_also_by_the_next_coordinator(
    trio: Trio, name: str, is_killed: bool
) -> None:
    topic = trio.create(name, 3)
    zombie = ConfluentTransactions(trio.bootstrap, name)
    zombie.open()
    zombie.begin()
    zombie.send(topic, b"zombie")
    zombie.flush()
    with ConfluentTransactions(trio.bootstrap, name) as heir:
        if is_killed:
            trio.nodes[coordinator_of(trio, TRANSACTION, name)].kill()
        with pytest.raises(Fenced):
            zombie.send(topic, b"late", 1)
            zombie.commit()
        heir.begin()
        for partition in range(3):
            heir.send(topic, b"heir", partition)
        heir.commit()
    for partition in range(3):
        assert read_values(trio.bootstrap, topic, [partition]) == [b"heir"]


@pytest.mark.jvm
@pytest.mark.slow
def test_a_stopped_process_that_wakes_up_under_another_coordinator_is_fenced(
    trio: Trio, java: Agent, second_java: Agent, name: str
) -> None:
    topic = trio.create(name, 3)
    zombie = AgentTransactions(second_java, trio.bootstrap, name)
    zombie.open()
    zombie.begin()
    zombie.send(topic, b"zombie", 1)
    second_java.send_signal(signal.SIGSTOP)
    trio.nodes[coordinator_of(trio, TRANSACTION, name)].kill()
    with AgentTransactions(java, trio.bootstrap, name) as heir:
        heir.begin()
        heir.send(topic, b"heir", 1)
        heir.commit()
    second_java.send_signal(signal.SIGCONT)
    with pytest.raises((Fenced, Failed)):
        zombie.send(topic, b"late", 2)
        zombie.commit()
    assert read_values(trio.bootstrap, topic, [1]) == [b"heir"]
    assert read_values(trio.bootstrap, topic, [2]) == []


# --- groups


class Members:
    """Consumers of one group, each in a thread: they commit what they have seen before they go on."""

    def __init__(self, trio: Trio, group: str, topic: str, protocol: str, count: int) -> None:
        self._settings = {
            "bootstrap.servers": trio.bootstrap,
            "group.id": group,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 0,
        }
        self._topic = topic
        self._over = threading.Event()
        self._lock = threading.Lock()
        self.seen: list[bytes] = []
        self.failures: list[BaseException] = []
        self._threads = [threading.Thread(target=self._run) for _ in range(count)]

    def __enter__(self) -> Members:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(PATIENCE_S)
        assert not self.failures, self.failures

    def _run(self) -> None:
        consumer = Consumer(self._settings)
        try:
            consumer.subscribe([self._topic])
            while not self._over.is_set():
                found = [one for one in consumer.consume(100, 0.2) if one.error() is None]
                with self._lock:
                    self.seen += [one.value() for one in found]
                if found:
                    _commit(consumer)
        except BaseException as error:
            self.failures.append(error)
        finally:
            consumer.close()

    def until(self, wanted: set[bytes]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not wanted <= set(self.seen):
            assert not self.failures, self.failures
            missing = sorted(wanted - set(self.seen))
            assert time.monotonic() < deadline, f"{len(missing)} are missing, of them {missing[:5]}"
            time.sleep(0.05)


def _commit(consumer: Consumer) -> None:
    try:
        consumer.commit(asynchronous=False)
    except KafkaException as error:
        # A member that was put out while it asked joins again with the next poll, and reads that part once more.
        if error.args[0].name() not in PASSING and not error.args[0].retriable():
            raise


def write(trio: Trio, topic: str, first: int, count: int) -> set[bytes]:
    producer = Producer({"bootstrap.servers": trio.bootstrap, "enable.idempotence": True, "log_level": 0})
    values = [b"%d" % number for number in range(first, first + count)]
    for number, value in enumerate(values):
        producer.produce(topic, value, partition=number % PARTITIONS)  # so that there is something to commit in each
    assert producer.flush(PATIENCE_S) == 0
    return set(values)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_groups_outlive_their_coordinators(trio: Trio, name: str, protocol: str) -> None:
    """It is killed, and after it its successor; each comes back before the next one goes."""
    topic = trio.create(name, PARTITIONS)
    wanted = write(trio, topic, 0, 300)
    with Members(trio, name, topic, protocol, 3) as members:
        members.until(wanted)
        for round_number in (1, 2):
            victim = coordinator_of(trio, GROUP, name)
            trio.nodes[victim].kill()
            wanted |= write(trio, topic, 300 * round_number, 300)
            members.until(wanted)
            assert coordinator_of(trio, GROUP, name) != victim
            trio.nodes[victim].start()
            trio.await_in_sync()
    assert set(members.seen) == wanted
    places = [TopicPartition(topic, index) for index in range(PARTITIONS)]
    with _asking(trio, name) as asking:
        ends = [answered(partial(asking.get_watermark_offsets, place, timeout=30))[1] for place in places]
        assert [one.offset for one in answered(lambda: asking.committed(places, timeout=30))] == ends
    trio.nodes[coordinator_of(trio, GROUP, name)].kill()
    with _asking(trio, name) as asking:
        assert [one.offset for one in answered(lambda: asking.committed(places, timeout=30))] == ends


@contextmanager
def _asking(trio: Trio, group: str) -> Iterator[Consumer]:
    consumer = Consumer({"bootstrap.servers": trio.bootstrap, "group.id": group, "log_level": 0})
    try:
        yield consumer
    finally:
        consumer.close()
