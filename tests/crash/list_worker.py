"""One client that appends to lists in transactions and reads them as they grow, until it is killed.

    python -m tests.crash.list_worker LIBRARY BOOTSTRAP NAME SEED FIRST_NUMBER

Lines on stdout: `begun NUMBER LIST:SEEN...` before anything is sent, `read OPEN_NUMBER LIST VALUE...` for what it read
next of a list (OPEN_NUMBER 0: outside of a transaction), then `committed NUMBER` or `aborted NUMBER` when the broker
has said so. Elements are appended with the library named; lists are read with confluent-kafka.
"""

from __future__ import annotations

import itertools
import random
import sys

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from ottla.testing.list_checker import Element, element_value
from tests.support.transactional_libraries import TRANSACTIONAL, Failed, Fenced, TransactionalLibrary

TOPIC = "lists"
LISTS = 4


def say(*words: object) -> None:
    print(*words, flush=True)


class Reading:
    def __init__(self, bootstrap: str, name: str) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": name,
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "auto.offset.reset": "error",
                "fetch.wait.max.ms": 20,
                "reconnect.backoff.max.ms": 200,
                "log_level": 0,
            }
        )
        self._consumer.assign([TopicPartition(TOPIC, one, OFFSET_BEGINNING) for one in range(LISTS)])
        self.seen = [0] * LISTS

    def read(self, open_number: int) -> None:
        """What is here by now."""
        news: dict[int, list[str]] = {}
        for message in self._consumer.consume(1000, 0.005):
            if message.error() is None:
                news.setdefault(message.partition(), []).append(message.value().decode())
        for index, values in news.items():
            say("read", open_number, index, *values)
            self.seen[index] += len(values)


def append(producer: TransactionalLibrary, reading: Reading, name: str, number: int, rng: random.Random) -> None:
    reading.read(0)
    lists = rng.sample(range(LISTS), rng.randint(1, LISTS))
    elements = [Element(name, number, part, index, reading.seen[index]) for part, index in enumerate(lists)]
    commit = rng.random() < 0.75
    say("begun", number, *(f"{one.list}:{one.seen}" for one in elements))
    try:
        producer.begin()
        for element in elements:
            producer.send(TOPIC, element_value(element), element.list)
            if rng.random() < 0.3:
                reading.read(number)
        if commit:
            producer.commit()
            say("committed", number)
            return
    except Failed:
        pass
    producer.abort()
    say("aborted", number)


def main(library: str, bootstrap: str, name: str, seed: str, first: str) -> None:
    rng = random.Random(int(seed))
    with TRANSACTIONAL[library](bootstrap, name, timeout_ms=4_000) as producer:
        reading = Reading(bootstrap, name)
        say("ready")
        for number in itertools.count(int(first)):
            append(producer, reading, name, number, rng)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except (Fenced, Failed) as error:
        say("over", str(error).replace("\n", " "))
