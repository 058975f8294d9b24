"""The pipeline in `make up`: orders come in, Spark enriches and counts them, its driver is killed, and nothing is lost.

usage: demo_pipeline.py HOST:PORT FOLDER

A generator writes orders and a table of customers. `ottla pipeline run examples/sales_by_country.py` is a process of
its own and is ended with SIGKILL halfway. What its topics hold is read by an ordinary consumer, shown while it
changes, and counted in the end.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

PIPELINE = Path(__file__).parent.parent / "examples" / "sales_by_country.py"
NAME = "sales-by-country"
ORDERS, CUSTOMERS, SALES = "shop-orders", "shop-customers", "sales-by-country"
COUNTRIES = ("Austria", "France", "Ghana", "Japan", "Mexico")
CUSTOMER_COUNT = 200
ORDERS_PER_S = 500
RUN_S_BEFORE_KILL = 5.0
RUN_S_AFTER_KILL = 4.0
PATIENCE_S = 240.0
WINDOWS_SHOWN = 4


class Generator(threading.Thread):
    """Writes orders at a steady rate until `stop`."""

    def __init__(self, servers: str) -> None:
        super().__init__(daemon=True)
        self._producer = Producer({"bootstrap.servers": servers, "linger.ms": 20, "enable.idempotence": True})
        self._stopping = threading.Event()
        self._run_id = uuid.uuid4().hex[:8]

    def write_customers(self) -> None:
        for number in range(CUSTOMER_COUNT):
            country = COUNTRIES[number % len(COUNTRIES)]
            row = {"customer": number, "name": f"customer {number}", "country": country}
            self._producer.produce(CUSTOMERS, json.dumps(row), str(number))
        self._producer.flush(30)

    def run(self) -> None:
        chance, began, written = random.Random(1), time.monotonic(), 0
        while not self._stopping.is_set():
            due = int((time.monotonic() - began) * ORDERS_PER_S)
            for number in range(written, due):
                customer = chance.randrange(CUSTOMER_COUNT)
                row = {
                    "order": f"{self._run_id}-{number}",
                    "customer": customer,
                    "euro": round(chance.uniform(1, 100), 2),
                    "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                }
                self._producer.produce(ORDERS, json.dumps(row), str(customer))
            written = due
            self._producer.poll(0)
            time.sleep(0.05)
        self._producer.flush(30)

    def stop(self) -> None:
        self._stopping.set()
        self.join()


class Sales:
    """The result topic as the table that it is: the last value of each key."""

    def __init__(self, servers: str) -> None:
        self._consumer = consumer(servers, SALES)
        self._rows: dict[bytes, dict[str, Any]] = {}
        self._lines_shown = 0
        self._said_at = 0.0
        self._said: list[str] = []

    def look(self) -> None:
        for message in self._consumer.consume(10_000, 0.3):
            if message.error() is None:
                self._rows[message.key()] = json.loads(message.value())

    @property
    def orders(self) -> int:
        return sum(row["orders"] for row in self._rows.values())

    def show(self, headline: str) -> None:
        """In place on a terminal; elsewhere now and then, when there is something new."""
        lines = [headline, *self._table()]
        if sys.stdout.isatty():
            if self._lines_shown:
                sys.stdout.write(f"\x1b[{self._lines_shown}F\x1b[J")
            self._lines_shown = len(lines)
        elif time.monotonic() - self._said_at < 5 or lines[1:] == self._said:
            return
        self._said_at, self._said = time.monotonic(), lines[1:]
        sys.stdout.write("\n".join(lines) + "\n")
        sys.stdout.flush()

    def leave(self) -> None:
        """What is printed next stands below the table."""
        self._lines_shown = 0

    def _table(self) -> Iterator[str]:
        by_window: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
        for row in self._rows.values():
            by_window[row["window"]][row["country"]] = row
        windows = sorted(by_window)[-WINDOWS_SHOWN:]
        yield "  country    " + "".join(f"{window[11:19]:>12}" for window in windows) + f"{'euro, all':>15}"
        for country in COUNTRIES:
            cells = (by_window[window].get(country, {}).get("orders", 0) for window in windows)
            euro = sum(rows.get(country, {}).get("euro", 0.0) for rows in by_window.values())
            yield f"  {country:<11}" + "".join(f"{cell:>12,}" for cell in cells) + f"{euro:>15,.2f}"


class PipelineProcess:
    def __init__(self, servers: str, folder: Path) -> None:
        self._folder = folder
        self._command = [sys.executable, "-m", "ottla", "-b", servers, "pipeline", "run", str(PIPELINE)]
        self._command += ["--data-dir", str(folder), "--master", "local[2]", "--conf", "spark.ui.enabled=false"]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> Path:
        return self._folder / "demonstration.log"

    def stop_leftover(self) -> None:
        """Of a demonstration that was interrupted."""
        stop = [sys.executable, "-m", "ottla", "pipeline", "stop", NAME, "--data-dir", str(self._folder)]
        subprocess.run(stop, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def start(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)

    def check(self) -> None:
        assert self._process is not None
        if self._process.poll() is not None:
            last = self.log.read_text().splitlines()[-1:]
            raise SystemExit(f"The pipeline ended: {' '.join(last)} ({self.log})")

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self.kill()


def main(servers: str, folder: Path) -> None:
    create_topics(servers)
    generator, sales, pipeline = Generator(servers), Sales(servers), PipelineProcess(servers, folder)
    generator.write_customers()
    print(f"\n{bold('# orders come in, a pipeline on Spark enriches them and counts them by country and window')}")
    print(f"$ ottla pipeline run examples/{PIPELINE.name}   (Spark starts, which takes some seconds)")
    pipeline.stop_leftover()
    pipeline.start()
    generator.start()
    try:
        demonstrate(generator, sales, pipeline, servers)
    finally:
        pipeline.stop()
    if not verify(servers):
        raise SystemExit(1)


def demonstrate(generator: Generator, sales: Sales, pipeline: PipelineProcess, servers: str) -> None:
    def until(headline: str, is_done: Callable[[], bool], seconds: float = PATIENCE_S) -> None:
        deadline = time.monotonic() + seconds
        while not is_done() and time.monotonic() < deadline:
            pipeline.check()
            sales.look()
            if sales.orders:
                sales.show(headline)

    before = sales_so_far(sales)
    until("sales by country, orders in windows of 10 seconds", lambda: sales.orders > before)
    until("sales by country, orders in windows of 10 seconds", lambda: False, RUN_S_BEFORE_KILL)
    sales.leave()
    print(bold("# kill -9: the driver is gone in the middle of its work; orders go on coming in; it starts again"))
    pipeline.kill()
    pipeline.start()
    at_kill = sales_so_far(sales)
    until("sales by country, after the crash", lambda: sales.orders > at_kill)
    until("sales by country, after the crash", lambda: False, RUN_S_AFTER_KILL)
    generator.stop()
    total = records_in(servers, ORDERS)
    until("sales by country, until every order is counted", lambda: sales.orders >= total)
    sales.leave()


def sales_so_far(sales: Sales) -> int:
    sales.look()
    return sales.orders


def verify(servers: str) -> bool:
    """Counts what is there, with a consumer that knows nothing of Spark.

    A batch that was published twice would say the same of a window twice; one that was counted twice, too much.
    """
    latest: dict[bytes, int] = {}
    said: set[tuple[bytes, int]] = set()
    updates = 0
    for key, value in read_all(servers, SALES):
        updates += 1
        latest[key] = json.loads(value)["orders"]
        said.add((key, latest[key]))
    rows_in, counted, duplicates = records_in(servers, ORDERS), sum(latest.values()), updates - len(said)
    print(bold("# the check, by an ordinary consumer that reads committed records"))
    sign = "=" if rows_in == counted else "is not"
    print(f"rows in {rows_in:,} {sign} rows counted {counted:,}, duplicates {duplicates:,}")
    return rows_in == counted and duplicates == 0


# --- the cluster


def create_topics(servers: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    wanted = [NewTopic(name, 2) for name in (ORDERS, SALES)]
    wanted.append(NewTopic(CUSTOMERS, 1, config={"cleanup.policy": "compact"}))
    for answer in admin.create_topics(wanted).values():
        try:
            answer.result(30)
        except KafkaException as error:
            if error.args[0].name() != "TOPIC_ALREADY_EXISTS":
                raise


def consumer(servers: str, topic: str) -> Consumer:
    """From the beginning, of all partitions, without a group's ceremony."""
    made = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": f"demonstration-{topic}",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
        }
    )
    partitions = made.list_topics(topic, 30).topics[topic].partitions
    made.assign([TopicPartition(topic, one, OFFSET_BEGINNING) for one in partitions])
    return made


def records_in(servers: str, topic: str) -> int:
    """By offsets: for a topic that no transaction wrote to."""
    asked = consumer(servers, topic)
    bounds = [asked.get_watermark_offsets(one, 30) for one in asked.assignment()]
    asked.close()
    return sum(high - low for low, high in bounds)


def read_all(servers: str, topic: str) -> Iterator[tuple[bytes, bytes]]:
    reader = consumer(servers, topic)
    ends = {one.partition: reader.get_watermark_offsets(one, 30)[1] for one in reader.assignment()}
    while any(_position(reader, topic, one) < end for one, end in ends.items()):
        for message in reader.consume(10_000, 0.3):
            if message.error() is None:
                yield message.key(), message.value()
    reader.close()


def _position(reader: Consumer, topic: str, partition: int) -> int:
    (found,) = reader.position([TopicPartition(topic, partition)])
    return max(0, int(found.offset))


def bold(text: str) -> str:
    return f"\x1b[1m{text}\x1b[0m" if sys.stdout.isatty() and "NO_COLOR" not in os.environ else text


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
