"""One producer that books transactions until it is killed, and says what it does and what it was told.

    python -m tests.crash.transactional_worker LIBRARY BOOTSTRAP NAME SEED FIRST_NUMBER

Lines on stdout: `begun NUMBER OFFSET PARTITION...`, then `committed NUMBER` or `aborted NUMBER` when the broker has
said so. No such line means that nobody knows. The process ends when its producer is of no use any more; the next one
with the same name begins where it left.
"""

from __future__ import annotations

import itertools
import random
import sys

from ottla.testing.transaction_checker import entries, entry_value
from tests.support.transactional_libraries import TRANSACTIONAL, Failed, Fenced, TransactionalLibrary

TOPIC = "bank"
PARTITIONS = 4
# The partition whose offset a transaction commits for its producer's group.
OFFSET_PARTITION = 0


def say(*words: object) -> None:
    print(*words, flush=True)


def group_of(name: str) -> str:
    return f"group-{name}"


def book(producer: TransactionalLibrary, name: str, number: int, rng: random.Random) -> None:
    partitions = rng.sample(range(PARTITIONS), rng.randint(2, PARTITIONS))
    with_offset = rng.random() < 0.5
    commit = rng.random() < 0.75
    say("begun", number, int(with_offset), *partitions)
    try:
        producer.begin()
        for entry in entries(name, number, partitions):
            producer.send(TOPIC, entry_value(entry), entry.partition)
        if with_offset:
            producer.offsets(group_of(name), {(TOPIC, OFFSET_PARTITION): number})
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
        say("ready")
        for number in itertools.count(int(first)):
            book(producer, name, number, rng)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except (Fenced, Failed) as error:
        say("over", str(error).replace("\n", " "))
