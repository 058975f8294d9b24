"""A bare producer or consumer on librdkafka, run as a process of its own by `lines_clients`.

    python -m bench.librdkafka_client produce|consume BOOTSTRAP TOPIC RECORDS RECORD_BYTES

Prints the seconds from the first record to the last answer (or the last record). librdkafka works in threads without
the GIL; records cross into Python ten thousand at a time, so that Python is the smaller part of the client.
"""

from __future__ import annotations

import os
import sys
import time

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

CHUNK = 10_000
# With a CA the listener is one with TLS.
_CA = os.environ.get("BENCH_CA")
TLS = {"security.protocol": "SSL", "ssl.ca.location": _CA} if _CA else {}


def produce(bootstrap: str, topic: str, records: int, record_bytes: int) -> float:
    failures: list[object] = []
    producer = Producer(
        {
            **TLS,
            "bootstrap.servers": bootstrap,
            "acks": "all",
            "linger.ms": 5,
            "batch.size": 1_000_000,
            "queue.buffering.max.messages": max(100_000, min(1_000_000, 256_000_000 // record_bytes)),
            "error_cb": failures.append,
            "delivery.report.only.error": True,
            "on_delivery": lambda error, _message: failures.append(error) if error else None,
        }
    )
    value = os.urandom(record_bytes)
    producer.list_topics(topic, timeout=30)
    started = time.perf_counter()
    left = records
    while left:
        count = min(left, CHUNK)
        sent = producer.produce_batch(topic, [{"value": value} for _ in range(count)], partition=0)
        left -= sent
        producer.poll(0 if sent == count else 0.01)
    unsent = producer.flush(120)
    elapsed = time.perf_counter() - started
    if unsent or failures:
        raise SystemExit(f"{unsent} records were not delivered, {len(failures)} errors: {failures[:1]}")
    return elapsed


def consume(bootstrap: str, topic: str, records: int) -> float:
    consumer = Consumer({**TLS, "bootstrap.servers": bootstrap, "group.id": "bench", "enable.auto.commit": False})
    consumer.list_topics(topic, timeout=30)
    started = time.perf_counter()
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    seen = 0
    while seen < records:
        messages = consumer.consume(CHUNK, timeout=0.1 if seen < records - CHUNK else 0.001)
        seen += sum(1 for message in messages if message.error() is None)
        if time.perf_counter() - started > 120:
            raise SystemExit(f"only {seen} of {records} records came")
    elapsed = time.perf_counter() - started
    consumer.close()
    return elapsed


if __name__ == "__main__":
    role, address, name, how_many, how_big = sys.argv[1:]
    if role == "produce":
        print(produce(address, name, int(how_many), int(how_big)))
    else:
        print(consume(address, name, int(how_many)))
