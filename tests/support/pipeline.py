"""Consume, transform, produce, exactly once: a process that a test can stop, resume and kill.

    python -m tests.support.pipeline LIBRARY BOOTSTRAP SOURCE TARGET GROUP TRANSACTIONAL_ID

Reads SOURCE in a group and writes each value to the same partition of TARGET, with its offsets, a few records in each
transaction; every fifth transaction is aborted and done again. Says on stdout what it does, a line each: `ready`,
`begun N`, `committed N` (records in all), `aborted`, `fenced`. Ends with status 3 when it is fenced.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
from typing import Any

BATCH = 10
FENCED_STATUS = 3


def say(*words: object) -> None:
    print(*words, flush=True)


def fenced(why: object) -> None:
    say("fenced", str(why).replace("\n", " "))
    sys.exit(FENCED_STATUS)


# --- confluent-kafka -------------------------------------------------------------------------------------------------


def confluent(bootstrap: str, source: str, target: str, group: str, transactional_id: str) -> None:
    from confluent_kafka import Consumer, KafkaException, Producer

    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "session.timeout.ms": 6000,
            "heartbeat.interval.ms": 500,
            "fetch.wait.max.ms": 50,
            "log_level": 0,
        }
    )
    consumer.subscribe([source])
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": transactional_id,
            "linger.ms": 1,
            # When all brokers were away, librdkafka 2.16 starts anew from bootstrap.servers, and from then on waits for
            # ever for the group coordinator that it had before; with Apache Kafka as well.
            "metadata.recovery.strategy": "none",
            "log_level": 0,
        }
    )
    producer.init_transactions(30)
    say("ready")
    done = 0
    for number in itertools.count(1):
        messages: list[Any] = []
        while not messages:
            messages = [one for one in consumer.consume(BATCH, 0.2) if one.error() is None]
        try:
            producer.begin_transaction()
            say("begun", number)
            for one in messages:
                producer.produce(target, one.value(), partition=one.partition())
            positions = [one for one in consumer.position(consumer.assignment()) if one.offset >= 0]
            producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), 30)
            if number % 5 == 0:
                producer.abort_transaction(30)
                say("aborted")
                _rewind_confluent(consumer)
                continue
            producer.commit_transaction(30)
        except KafkaException as raised:
            error = raised.args[0]
            if not error.txn_requires_abort():
                fenced(error)
            _abort_confluent(producer)
            say("aborted", error.name())
            _rewind_confluent(consumer)
            continue
        done += len(messages)
        say("committed", done)


def _abort_confluent(producer: Any) -> None:
    from confluent_kafka import KafkaException

    while True:
        try:
            producer.abort_transaction(30)
            return
        except KafkaException as raised:
            if not raised.args[0].retriable():
                fenced(raised.args[0])


def _rewind_confluent(consumer: Any) -> None:
    """Back to what was committed, or to the start."""
    from confluent_kafka import OFFSET_BEGINNING, KafkaException

    for one in consumer.committed(consumer.assignment(), timeout=30):
        one.offset = one.offset if one.offset >= 0 else OFFSET_BEGINNING
        try:
            consumer.seek(one)
        except KafkaException:
            pass  # it is no longer ours


# --- kafka-python ----------------------------------------------------------------------------------------------------


def kafka_python(bootstrap: str, source: str, target: str, group: str, transactional_id: str) -> None:
    from kafka import KafkaConsumer, KafkaProducer, OffsetAndMetadata, errors

    consumer = KafkaConsumer(
        source,
        bootstrap_servers=bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
        enable_auto_commit=False,
        session_timeout_ms=6000,
        heartbeat_interval_ms=500,
        fetch_max_wait_ms=50,
    )
    producer = KafkaProducer(bootstrap_servers=bootstrap, transactional_id=transactional_id, linger_ms=1)
    producer.init_transactions()
    say("ready")
    done = 0
    for number in itertools.count(1):
        messages: list[Any] = []
        while not messages:
            try:
                messages = [one for row in consumer.poll(200, max_records=BATCH).values() for one in row]
            except errors.KafkaConnectionError:
                pass  # a broker that is killed while its consumer looks for a coordinator: poll raises it, and goes on
        try:
            producer.begin_transaction()
            say("begun", number)
            sent = [producer.send(target, one.value, partition=one.partition) for one in messages]
            offsets = {one: OffsetAndMetadata(consumer.position(one), "", -1) for one in consumer.assignment()}
            producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
            for one in sent:
                one.get(30)
            if number % 5 == 0:
                producer.abort_transaction()
                say("aborted")
                _rewind(consumer)
                continue
            producer.commit_transaction()
        except errors.KafkaError as error:
            if "fenced" in repr(error).lower() or isinstance(error, errors.InvalidProducerEpochError):
                fenced(repr(error))
            try:
                producer.abort_transaction()
            except errors.KafkaError as worse:
                fenced(repr(worse))
            say("aborted", type(error).__name__)
            _rewind(consumer)
            continue
        done += len(messages)
        say("committed", done)


def _rewind(consumer: Any) -> None:
    for one in consumer.assignment():
        committed = consumer.committed(one)
        if committed is None:
            consumer.seek_to_beginning(one)
        else:
            consumer.seek(one, committed)


# --- aiokafka --------------------------------------------------------------------------------------------------------


def aiokafka_consumer(*topics: str, bootstrap: str, group: str, **more: Any) -> Any:
    from aiokafka import AIOKafkaConsumer

    return AIOKafkaConsumer(
        *topics,
        bootstrap_servers=bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
        enable_auto_commit=False,
        session_timeout_ms=6000,
        heartbeat_interval_ms=500,
        fetch_max_wait_ms=50,
        **more,
    )


async def _aiokafka(bootstrap: str, source: str, target: str, group: str, transactional_id: str) -> None:
    from aiokafka import AIOKafkaProducer, errors

    consumer = aiokafka_consumer(source, bootstrap=bootstrap, group=group)
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=transactional_id, linger_ms=1)
    await consumer.start()
    await producer.start()
    say("ready")
    done = 0
    for number in itertools.count(1):
        messages: list[Any] = []
        while not messages:
            messages = [
                one for row in (await consumer.getmany(timeout_ms=200, max_records=BATCH)).values() for one in row
            ]
        try:
            await producer.begin_transaction()
            say("begun", number)
            for one in messages:
                await producer.send(target, one.value, partition=one.partition)
            offsets = {one: await consumer.position(one) for one in consumer.assignment()}
            await producer.send_offsets_to_transaction(offsets, group)
            if number % 5 == 0:
                await producer.abort_transaction()
                say("aborted")
                await _rewind_aiokafka(consumer)
                continue
            await producer.commit_transaction()
        except errors.ProducerFenced as error:
            fenced(repr(error))
        except errors.KafkaError as error:
            await producer.abort_transaction()
            say("aborted", type(error).__name__)
            await _rewind_aiokafka(consumer)
            continue
        done += len(messages)
        say("committed", done)


async def _rewind_aiokafka(consumer: Any) -> None:
    for one in consumer.assignment():
        await to_committed(consumer, one)


async def to_committed(consumer: Any, partition: Any) -> None:
    committed = await consumer.committed(partition)
    if committed is None:
        await consumer.seek_to_beginning(partition)
    else:
        consumer.seek(partition, committed)


def aiokafka(*arguments: str) -> None:
    asyncio.run(_aiokafka(*arguments))


def aiokafka_by_partition(*arguments: str) -> None:
    """With a transactional id for each partition: TRANSACTIONAL_ID-0, TRANSACTIONAL_ID-1 and so on."""
    from tests.support.pipeline_by_partition import run

    run(*arguments)


LIBRARIES = {
    "confluent-kafka": confluent,
    "kafka-python": kafka_python,
    "aiokafka": aiokafka,
    "aiokafka by partition": aiokafka_by_partition,
}


if __name__ == "__main__":
    LIBRARIES[sys.argv[1]](*sys.argv[2:7])
