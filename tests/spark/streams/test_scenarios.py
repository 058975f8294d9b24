"""Every operator, window and join that is compared with Kafka Streams gives on Spark what it gives in the test driver.

All scenarios are one application, each with topics of its own, so that Spark starts two queries and not sixty: the
second half of the records comes after a restart, with state from the changelogs.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.streams import StreamsBuilder, Topology, TopologyTestDriver, serdes
from ottla.streams.engine.application import StreamsApplication
from ottla.streams.topology import SinkNode, SourceNode
from ottla.testing import Broker
from tests.spark import topics
from tests.streams.oracle.scenarios import Settings, add_scenario, scenario_names

Row = tuple[str, str | None, str | None, int]
HOPPING = {"size": 20, "advance": 7, "grace": 5}
SETTINGS: dict[str, list[Settings]] = {
    "time windows": [{"size": 20, "grace": 5}, HOPPING, {**HOPPING, "close": True}],
    "unlimited windows": [{"start": 30}],
    "sliding windows": [{"size": 15, "grace": 5}],
    "session windows": [{"gap": 9, "grace": 4}],
    "suppressed windows": [HOPPING],
    "suppressed sessions": [{"gap": 9, "grace": 4}],
    "suppressed for a time": [{"wait": 10, "records": 3}],
    "windowed cogroup": [HOPPING],
    "stream join": [{"kind": kind, "before": 9, "after": 12, "grace": 5} for kind in ("inner", "left", "outer")],
    "stream table join": [{"kind": kind} for kind in ("inner", "left")],
    "table join": [{"kind": kind} for kind in ("inner", "left", "outer")],
    "foreign key join": [{"kind": kind} for kind in ("inner", "left")],
    "join with a versioned table": [{"kind": kind, "history": 20} for kind in ("inner", "left")],
    "grouped versioned table": [{"history": 20}],
    "timer": [{"every": 15}],
    "windowed reduce": [HOPPING],
    "sliding reduce": [{"size": 15, "grace": 5}],
    "session reduce": [{"gap": 9, "grace": 4}],
    "windowed counts": [{"windows": kind, "size": 9, "grace": 4} for kind in ("time", "sliding", "session")],
    "sliding cogroup": [{"size": 15, "grace": 5}],
    "session cogroup": [{"gap": 9, "grace": 4}],
    "regrouped windows": [HOPPING],
    "rekeyed stream join": [{"kind": kind, "before": 9, "grace": 5} for kind in ("inner", "left", "outer")],
    "self join": [{"kind": kind, "before": 9, "after": 12, "grace": 5} for kind in ("inner", "left", "outer")],
    "three tables": [{"kind": "inner", "then": "outer"}, {"kind": "outer", "then": "left"}],
    "stream with joined tables": [{"kind": kind} for kind in ("inner", "left", "outer")],
    "versioned table join": [{"kind": kind, "history": 20} for kind in ("inner", "left", "outer")],
    "versioned foreign key": [{"kind": kind, "history": 20} for kind in ("inner", "left")],
    "suppressed without bounds": [{"wait": 10}],
    "kept": [{"store": kind} for kind in ("key value", "timestamped", "window", "session", "versioned")],
}
# Times are of 1970: such records are too old for any broker that is not told to keep them.
KEPT = {"retention.ms": "-1"}
# A record of a global table may be seen before one of the stream that came earlier: neither has a task for it. What
# goes through a repartition topic comes after what does not. The wall clock is the machine's.
NOT_IN_ORDER = ("global table join", "rekeyed join", "merged", "wall clock")
# Subscriptions and answers are under way while records come: what a key has in the end is the same.
IN_THE_END = ("foreign key join", "versioned foreign key")
CASES = [(name, chosen) for name in scenario_names() for chosen in SETTINGS.get(name, [{}]) if name not in NOT_IN_ORDER]


def everything() -> Topology:
    builder = StreamsBuilder(key=serdes.string, value=serdes.string)
    topology, known = builder.build(), set()
    for number, (name, chosen) in enumerate(CASES):
        add_scenario(name, builder, chosen)
        for node_name in topology.nodes.keys() - known:
            node = topology.nodes[node_name]
            if isinstance(node, SourceNode):
                node.topics = tuple(renamed(number, topic) for topic in node.topics)
            elif isinstance(node, SinkNode) and node.topic == "out":
                node.topic = renamed(number, "out")
        known = set(topology.nodes)
    return topology


def renamed(number: int, topic: str) -> str:
    return f"{topic}-{number}" if topic in ("a", "b", "c", "out") else topic


def rows(number: int) -> list[Row]:
    """Of one topic in any order of time; where two meet in a task they are taken by time, so theirs rises."""
    chance, (name, _) = random.Random(number), CASES[number]
    several = "abc" if name in ("three tables", "stream with joined tables") else "ab"
    has_two = any(word in name for word in ("join", "cogroup", "foreign key", "three")) and name != "self join"
    made: list[Row] = []
    for place in range(40):
        topic = chance.choice(several) if has_two else "a"
        time_ms = 1_000 + (4 * place if has_two else 3 * place + chance.randint(0, 30))
        made.append(
            (topic, chance.choice(["k", "l", "kk"]), chance.choice(["a1", "a2", "b1", "c1", "d1", None]), time_ms)
        )
    return made


def expected(topology: Topology) -> list[list[Any]]:
    with TopologyTestDriver(topology) as driver:
        for number in range(len(CASES)):
            for topic, key, value, time_ms in rows(number):
                driver.input_topic(renamed(number, topic)).pipe(value, key=key, timestamp=time_ms)
        return [
            [(record.key, record.value, record.timestamp) for record in driver.output_topic(f"out-{number}").read_all()]
            for number in range(len(CASES))
        ]


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with Broker() as broker:
        yield broker.bootstrap_servers


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_all_scenarios_give_the_same_in_the_test_driver_and_on_spark(spark: Any, servers: str, tmp_path: Path) -> None:
    topology = everything()
    inputs = [topic for topic in topology.source_topics() if topic not in topology.internal_topics]
    outputs = [f"out-{number}" for number in range(len(CASES))]
    admin = AdminClient({"bootstrap.servers": servers})
    made = admin.create_topics([NewTopic(each, 1, config=KEPT) for each in {*inputs, *outputs}])
    for answer in made.values():
        answer.result(30)
    producer = confluent_kafka.Producer({"bootstrap.servers": servers, "linger.ms": 0})
    application = StreamsApplication(topology, application_id="scenarios", bootstrap=servers)
    for half in range(2):
        for number in range(len(CASES)):
            for topic, key, value, time_ms in rows(number)[20 * half : 20 * half + 20]:
                producer.produce(renamed(number, topic), value, key, timestamp=time_ms)
        assert producer.flush(30) == 0
        application.run_available(spark, checkpoint=str(tmp_path))
    for number, wanted in enumerate(expected(topology)):
        found = [
            (*(None if each is None else each.decode() for each in (key, value)), time_ms)
            for _partition, _offset, key, value, time_ms, *_ in sorted(topics.consumed(servers, f"out-{number}"))
        ]
        if CASES[number][0] in IN_THE_END:
            assert _last(found) == _last(wanted), CASES[number]
        else:
            assert found == wanted, CASES[number]


def _last(records: list[Any]) -> dict[str, Any]:
    return {key: value for key, value, _ in records}
