"""Transactions with confluent-kafka, kafka-python and aiokafka: what they write is read whole or not at all."""

from __future__ import annotations

import itertools
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from ottla.protocol.messages import DescribeTransactionsRequest
from ottla.testing import Broker
from tests.support.brokers import OttlaProcess
from tests.support.pipeline import FENCED_STATUS
from tests.support.pipelines import Pipeline, expected, fill, moved
from tests.support.raw_client import RawClient
from tests.support.transactional_client import set_transaction_version
from tests.support.transactional_libraries import (
    TRANSACTIONAL,
    Failed,
    Fenced,
    Reader,
    TransactionalLibrary,
    committed_offset,
    read_values,
)

LIBRARIES = sorted(TRANSACTIONAL)
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"transaction.abort.timed.out.transaction.cleanup.interval.ms": "500"}) as running:
        yield running


@pytest.fixture
def topic(broker: Broker) -> str:
    name = f"txn-{next(_numbers)}"
    broker.create_topic(name, 2)
    return name


@pytest.fixture(params=LIBRARIES)
def make(request: pytest.FixtureRequest, broker: Broker) -> Callable[..., TransactionalLibrary]:
    def made(transactional_id: str, **more: Any) -> TransactionalLibrary:
        return TRANSACTIONAL[request.param](broker.bootstrap_servers, transactional_id, **more)  # type: ignore[no-any-return]

    return made


Make = Callable[..., TransactionalLibrary]


def test_commit_and_abort(broker: Broker, topic: str, make: Make) -> None:
    with make(topic) as producer:
        for number, commit in enumerate((True, False, True, False, False, True)):
            producer.begin()
            for partition in (0, 1):
                producer.send(topic, b"%d-a" % number, partition)
                producer.send(topic, b"%d-b" % number, partition)
            producer.commit() if commit else producer.abort()
    expected = [b"0-a", b"0-b", b"2-a", b"2-b", b"5-a", b"5-b"]
    assert read_values(broker.bootstrap_servers, topic, (0, 1)) == expected * 2
    everything = read_values(broker.bootstrap_servers, topic, (0, 1), committed=False)
    # What was never sent before the abort need not be there.
    assert set(expected) <= set(everything)


def test_offsets_move_with_the_commit(broker: Broker, topic: str, make: Make) -> None:
    with make(topic) as producer:
        producer.begin()
        producer.send(topic, b"one")
        producer.offsets(f"group-{topic}", {(topic, 0): 5})
        assert committed_offset(broker.bootstrap_servers, f"group-{topic}", topic) < 0
        producer.commit()
        assert committed_offset(broker.bootstrap_servers, f"group-{topic}", topic) == 5
        producer.begin()
        producer.offsets(f"group-{topic}", {(topic, 0): 9})
        producer.abort()
        assert committed_offset(broker.bootstrap_servers, f"group-{topic}", topic) == 5


def test_a_second_instance_fences_the_first(broker: Broker, topic: str, make: Make) -> None:
    first, second = make(topic), make(topic)
    first.open()
    first.begin()
    first.send(topic, b"zombie")
    with second:
        second.begin()
        second.send(topic, b"heir")
        second.commit()
        with pytest.raises((Fenced, Failed)) as refused:
            first.send(topic, b"zombie again", 1)
            first.commit()
        if refused.type is Failed:
            with pytest.raises((Fenced, Failed)):
                first.abort()
                first.begin()
                first.send(topic, b"still a zombie")
                first.commit()
        second.begin()
        second.send(topic, b"goes on")
        second.commit()
    first.close()
    assert read_values(broker.bootstrap_servers, topic, (0, 1)) == [b"heir", b"goes on"]


def test_a_transaction_that_takes_too_long_is_aborted(broker: Broker, topic: str, make: Make) -> None:
    producer: Any = make(topic, timeout_ms=10_000)
    producer.open()
    producer.begin()
    producer.send(topic, b"slow")
    producer.flush()
    reader = Reader(broker.bootstrap_servers, topic)
    assert reader.until_end() == {0: []}
    broker.clock.advance(seconds=11)
    with RawClient.to(broker.bootstrap_servers) as client:
        request = DescribeTransactionsRequest(transactional_ids=[topic])
        while client.call(request, 0).transaction_states[0].transaction_state != "CompleteAbort":
            time.sleep(0.05)
    with pytest.raises((Fenced, Failed)):
        producer.send(topic, b"too slow")
        producer.commit()
    producer.close()
    with make(topic) as other:
        other.begin()
        other.send(topic, b"quick")
        other.commit()
    assert reader.until(1) == {0: [b"quick"]}
    reader.close()


def test_different_libraries_take_over_from_one_another(broker: Broker, topic: str) -> None:
    for number, name in enumerate([*LIBRARIES, *reversed(LIBRARIES)]):
        with TRANSACTIONAL[name](broker.bootstrap_servers, topic) as producer:
            for commit in (True, False):
                producer.begin()
                producer.send(topic, b"%d %s" % (number, str(commit).encode()))
                producer.commit() if commit else producer.abort()
    assert read_values(broker.bootstrap_servers, topic) == [b"%d True" % number for number in range(6)]


def test_committed_aborted_and_plain_writers_share_a_partition(broker: Broker, topic: str) -> None:
    """And one transaction that stays open for long holds readers of committed records back, until it ends."""
    plain = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 1})
    with (
        TRANSACTIONAL["confluent-kafka"](broker.bootstrap_servers, f"{topic}-slow") as slow,
        TRANSACTIONAL["kafka-python"](broker.bootstrap_servers, f"{topic}-commits") as commits,
        TRANSACTIONAL["aiokafka"](broker.bootstrap_servers, f"{topic}-aborts") as aborts,
    ):
        expected = []
        for number in range(20):
            if number == 5:
                slow.begin()
                slow.send(topic, b"slow")
                slow.flush()
            for kind, producer in (("commit", commits), ("abort", aborts)):
                producer.begin()
                producer.send(topic, f"{kind} {number}".encode())
                producer.commit() if kind == "commit" else producer.abort()
            plain.produce(topic, f"plain {number}", partition=0)
            plain.flush(30)
            expected += [f"commit {number}".encode(), f"plain {number}".encode()]
        reader = Reader(broker.bootstrap_servers, topic)
        assert reader.until_end()[0] == expected[:10], "nothing beyond what is open"
        everybody = read_values(broker.bootstrap_servers, topic, committed=False)
        assert [one for one in everybody if not one.startswith(b"abort")] == [*expected[:10], b"slow", *expected[10:]]
        slow.send(topic, b"slow to the end")
        slow.commit()
        expected[10:10] = [b"slow"]
        assert reader.until(len(expected) + 1)[0] == [*expected, b"slow to the end"]
        reader.close()


def test_both_protocol_levels_serve_the_clients(tmp_path: Path) -> None:
    """transaction.version 1 and back: these libraries speak the classic protocol anyway, and must not notice."""
    with Broker() as broker:
        broker.create_topic("data")
        expected = []
        for level in (1, 2, 0):
            with RawClient.to(broker.bootstrap_servers) as client:
                set_transaction_version(client, level)
            for name in LIBRARIES:
                with TRANSACTIONAL[name](broker.bootstrap_servers, name) as producer:
                    producer.begin()
                    producer.send("data", f"{level} {name}".encode())
                    producer.commit()
                    expected.append(f"{level} {name}".encode())
                    producer.begin()
                    producer.send("data", b"aborted")
                    producer.abort()
        assert read_values(broker.bootstrap_servers, "data") == expected


# --- pipelines -------------------------------------------------------------------------------------------------------


@pytest.fixture
def pipelines() -> Iterator[Callable[..., Pipeline]]:
    running: list[Pipeline] = []

    def start(*arguments: str) -> Pipeline:
        running.append(Pipeline(*arguments))
        return running[-1]

    yield start
    for one in running:
        one.end()


@pytest.mark.parametrize("library", LIBRARIES)
def test_consume_transform_produce(broker: Broker, library: str, pipelines: Callable[..., Pipeline]) -> None:
    name = f"pipe-{next(_numbers)}"
    broker.create_topic(f"{name}-in", 2)
    broker.create_topic(f"{name}-out", 2)
    bootstrap = broker.bootstrap_servers
    fill(bootstrap, f"{name}-in", 0, 200, 2)
    pipelines(library, bootstrap, f"{name}-in", f"{name}-out", name, name).until("ready")
    assert moved(bootstrap, f"{name}-out", 2, 200) == expected(200, 2)
    assert [committed_offset(bootstrap, name, f"{name}-in", one) for one in (0, 1)] == [100, 100]


# aiokafka names no generation with its offsets, so its members share transactional ids: one for each partition.
@pytest.mark.parametrize(
    ("libraries", "ids"),
    [
        (("confluent-kafka", "kafka-python", "confluent-kafka"), ("1", "2", "2")),
        (("aiokafka by partition",) * 3, ("by", "by", "by")),
    ],
    ids=["by member", "by partition"],
)
def test_rebalances_in_the_middle_move_every_record_once(
    broker: Broker, pipelines: Callable[..., Pipeline], libraries: Sequence[str], ids: Sequence[str]
) -> None:
    name, bootstrap, partitions = f"pipe-{next(_numbers)}", broker.bootstrap_servers, 4
    broker.create_topic(f"{name}-in", partitions)
    broker.create_topic(f"{name}-out", partitions)
    fill(bootstrap, f"{name}-in", 0, 400, partitions)

    def member(number: int) -> Pipeline:
        return pipelines(libraries[number], bootstrap, f"{name}-in", f"{name}-out", name, f"{name}-{ids[number]}")

    member(0).until("committed")
    second = member(1)
    second.until("ready")
    sent, deadline = 400, time.monotonic() + 120
    while not second.committed:  # the first would move all there is before the second has its partitions
        assert time.monotonic() < deadline, f"the second never took part: {second.said[-5:]}"
        fill(bootstrap, f"{name}-in", sent, 40, partitions)
        sent += 40
        second.listen(1.0)
    second.end()  # in the middle of whatever it does
    member(2).until("ready")
    fill(bootstrap, f"{name}-in", sent, 200, partitions)
    sent += 200
    assert moved(bootstrap, f"{name}-out", partitions, sent, 120) == expected(sent, partitions)


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_zombie_that_wakes_up_is_fenced(broker: Broker, library: str, pipelines: Callable[..., Pipeline]) -> None:
    """Stopped in the middle of a transaction, succeeded, resumed: what it still wants to do is refused."""
    name, bootstrap = f"pipe-{next(_numbers)}", broker.bootstrap_servers
    broker.create_topic(f"{name}-in", 1)
    broker.create_topic(f"{name}-out", 1)
    fill(bootstrap, f"{name}-in", 0, 100, 1)
    zombie = pipelines(library, bootstrap, f"{name}-in", f"{name}-out", name, name)
    zombie.until("committed")
    zombie.until("begun")
    zombie.process.send_signal(signal.SIGSTOP)
    heir = pipelines(library, bootstrap, f"{name}-in", f"{name}-out", name, name)
    heir.until("ready")
    broker.clock.advance(seconds=10)  # past the session of the zombie's consumer
    heir.until("committed", 60)
    zombie.process.send_signal(signal.SIGCONT)
    fill(bootstrap, f"{name}-in", 100, 100, 1)
    assert moved(bootstrap, f"{name}-out", 1, 200) == expected(200, 1)
    assert zombie.process.wait(60) == FENCED_STATUS


@pytest.mark.parametrize("library", LIBRARIES)
def test_readers_and_pipelines_live_through_kills_of_the_broker(
    tmp_path: Path, library: str, pipelines: Callable[..., Pipeline]
) -> None:
    properties = {"offsets.topic.num.partitions": "2", "group.initial.rebalance.delay.ms": "0"}
    with OttlaProcess(tmp_path, properties) as broker:
        bootstrap = broker.bootstrap
        _create(bootstrap, "in", 2)
        _create(bootstrap, "out", 2)
        reader = Reader(bootstrap, "out", (0, 1))
        pipe = pipelines(library, bootstrap, "in", "out", "g", "t")

        def start_anew() -> Pipeline:
            """kafka-python was seen to wait for ever to send its offsets after a kill; who runs it starts it anew."""
            pipe.end()
            other = pipelines(library, bootstrap, "in", "out", "g", "t")
            other.until("ready")
            return other

        for round_ in range(3):
            fill(bootstrap, "in", round_ * 200, 200, 2)
            while not pipe.hears("committed", 30.0):
                pipe = start_anew()
            broker.kill()
            broker.start()
        while not _gets_on(reader, 600):
            pipe = start_anew()
        assert reader.values == expected(600, 2)
        reader.close()
        assert moved(bootstrap, "out", 2, 600) == expected(600, 2)


def _gets_on(reader: Reader, count: int, patience_s: float = 30.0) -> bool:
    """Whether so many records come, with no pause that is longer than this."""
    while (seen := _count(reader)) < count:
        reader.until(seen + 1, patience_s)
        if _count(reader) == seen:
            return False
    return True


def _count(reader: Reader) -> int:
    return sum(map(len, reader.values.values()))


def _create(bootstrap: str, topic: str, partitions: int) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(30)
