"""Transactional producers on librdkafka, run as a process of its own by `lines_transactions`.

    python -m bench.librdkafka_transactions BOOTSTRAP TOPIC PARTITIONS PRODUCERS RECORDS RECORD_BYTES WARM_UP_S SECONDS

Prints `COUNTED SECONDS TOTAL`, as `java/TransactionLoad.java` does. librdkafka speaks the classic protocol: a partition
is added with a request of its own, and the epoch stays. Each producer has a Python thread, which waits without the GIL.
"""

from __future__ import annotations

import sys
import threading
import time

from confluent_kafka import Producer

CALL_S_MAX = 30.0


class Committing(threading.Thread):
    def __init__(self, producer: Producer, topic: str, places: list[int], value: bytes) -> None:
        super().__init__(daemon=True)
        self._producer, self._topic, self._places, self._value = producer, topic, places, value
        self.counted = self.total = 0
        self.counts_from = self.ends = 0.0
        self.failure: Exception | None = None

    def run(self) -> None:
        try:
            while time.perf_counter() < self.ends:
                self._producer.begin_transaction()
                for partition in self._places:
                    self._producer.produce(self._topic, self._value, partition=partition)
                self._producer.commit_transaction(CALL_S_MAX)
                self.total += 1
                self.counted += self.counts_from <= time.perf_counter() < self.ends
        except Exception as error:
            self.failure = error


def main(
    bootstrap: str,
    topic: str,
    partitions: int,
    producers: int,
    records: int,
    record_bytes: int,
    warm_up_s: float,
    seconds: float,
) -> None:
    places = [number % partitions for number in range(records)]
    threads = []
    for number in range(producers):
        settings = {"bootstrap.servers": bootstrap, "transactional.id": f"{topic}-{number}", "linger.ms": 0}
        producer = Producer(settings)
        producer.init_transactions(CALL_S_MAX)
        threads.append(Committing(producer, topic, places, bytes(record_bytes)))
    counts_from = time.perf_counter() + warm_up_s
    for one in threads:
        one.counts_from, one.ends = counts_from, counts_from + seconds
        one.start()
    for one in threads:
        one.join()
        if one.failure is not None:
            raise SystemExit(f"a transaction failed: {one.failure}")
    print(sum(one.counted for one in threads), seconds, sum(one.total for one in threads))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:7]), *map(float, sys.argv[7:9]))  # type: ignore[arg-type]
