"""The console: how soon its first page is there on a large cluster, and how fast it finds records.

The first paint is of the overview with 1,000 topics and 1,000 groups beside that with ten of each, as Chromium measures
it, or without a browser the time of the whole answer. The search looks for a field of JSON in values; what it is
compared with is what other consoles do: poll with a client, parse each value, look at the field.
"""

from __future__ import annotations

import json
import shutil
import time
import urllib.request
import uuid
from collections.abc import Callable
from functools import partial
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from bench.contenders import Contender
from bench.measure import Arm, Comparison, Values, cost, throughput

TOPICS = GROUPS = 1_000
FEW = 10
RECORDS = 400_000
MB = 1e6
_WANTED = 'value.customer == "customer-77"'


def _admin(contender: Contender) -> AdminClient:
    return AdminClient({"bootstrap.servers": contender.broker.bootstrap})


# --- the first paint


def _fill(contender: Contender, count: int) -> None:
    admin = _admin(contender)
    for begin in range(0, count, 200):
        names = [f"topic-{number:04}" for number in range(begin, min(count, begin + 200))]
        for made in admin.create_topics([NewTopic(name, 1, 1) for name in names], request_timeout=60).values():
            made.result(60)
    for number in range(count):
        group = {"bootstrap.servers": contender.broker.bootstrap, "group.id": f"group-{number:04}"}
        consumer = Consumer(group)
        consumer.commit(offsets=[TopicPartition(f"topic-{number:04}", 0, 0)], asynchronous=False)
        consumer.close()


def _paint(url: str) -> Values:
    began = time.perf_counter()
    with urllib.request.urlopen(url) as reply:
        reply.read()
    answered = time.perf_counter() - began
    return {"answer": answered * 1000, "first paint": _first_paint_ms(url)}


def _first_paint_ms(url: str) -> float:
    """0 where there is no browser."""
    if not (shutil.which("chromedriver") and shutil.which("chromium")):
        return 0.0
    from tests.console.browser import browsing

    with browsing(url) as browser:
        paints = []
        for _ in range(4):
            browser.open("/")
            script = "return performance.getEntriesByName('first-contentful-paint').map(e => e.startTime)"
            paints.append(float(browser.until(partial(browser.driver.execute_script, script))[0]))
    return min(paints)


def paint_line(few: Contender, many: Contender, enter: Callable[..., Any]) -> Comparison:
    from tests.console.running import RunningConsole

    arms = []
    for contender, count, label in ((few, FEW, f"{FEW} of each"), (many, TOPICS, f"{TOPICS:,} of each")):
        _fill(contender, count)
        console = enter(RunningConsole(contender.broker.bootstrap, interval_s=5.0))
        console.console.seen()
        arms.append(Arm(label, partial(_paint, console.url)))
    metrics = [cost("first paint", "ms", digits=0), cost("answer", "ms", digits=0)]
    return Comparison("console-paint", "the console's overview: topics and groups", metrics, arms)


# --- the search


def _written(contender: Contender) -> tuple[str, int]:
    """A topic of orders, and how many bytes their values are."""
    topic, size = f"search-{uuid.uuid4().hex[:8]}", 0
    admin = _admin(contender)
    admin.create_topics([NewTopic(topic, 2, 1)])[topic].result(60)
    producer = Producer({"bootstrap.servers": contender.broker.bootstrap, "linger.ms": 50, "compression.type": "lz4"})
    for number in range(RECORDS):
        value = json.dumps(
            {"id": number, "customer": f"customer-{number % 5000}", "total": number * 0.25, "lines": [1, 2, 3]}
        )
        size += len(value)
        while True:
            try:
                producer.produce(topic, value, key=str(number))
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    producer.flush(120)
    return topic, size


def _expected() -> int:
    return RECORDS // 5000


def _searched(contender: Contender, topic: str, size: int) -> Values:
    from ottla.client.lookup import ClusterReader
    from ottla.client.settings import ClientSettings
    from ottla.console.records.query import parse_query
    from ottla.console.records.searching import Search

    query = parse_query(topic, {"from": "start", "where": _WANTED, "limit": "500"})
    began = time.perf_counter()
    with ClusterReader(ClientSettings(contender.broker.bootstrap)) as reader:
        search = Search(reader, query, None, seconds_max=300)
        matches = sum(len(found) for found in search.rounds())
    took = time.perf_counter() - began
    assert matches == _expected(), matches
    return {"searched": size / MB / took}


def _polled(contender: Contender, topic: str, size: int) -> Values:
    began = time.perf_counter()
    consumer = Consumer({"bootstrap.servers": contender.broker.bootstrap, "group.id": uuid.uuid4().hex})
    consumer.assign([TopicPartition(topic, number, 0) for number in range(2)])
    seen = matches = 0
    while seen < RECORDS:
        for message in consumer.consume(1_000, 10.0):
            seen += 1
            if json.loads(message.value()).get("customer") == "customer-77":
                matches += 1
    took = time.perf_counter() - began
    consumer.close()
    assert matches == _expected(), matches
    return {"searched": size / MB / took}


def search_line(contender: Contender) -> Comparison:
    topic, size = _written(contender)
    return Comparison(
        "console-search",
        "records of JSON found by a field",
        [throughput("searched", "MB/s", goal=3.0, digits=0)],
        [
            Arm("polling with confluent-kafka", partial(_polled, contender, topic, size)),
            Arm("console", partial(_searched, contender, topic, size)),
        ],
    )
