"""Rounds of a sink on a broker, without Spark: its tasks run here, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from ottla.client.settings import parse_named
from ottla.connect.api import ConnectorFailure
from ottla.connect.connectors.file_stream import FileStreamSink
from ottla.connect.connectors.files.sink import FilesSink
from ottla.connect.rounds.context import ConnectorContext, RoundSettings, WorkerContext
from ottla.connect.rounds.sink import SinkRounds
from ottla.connect.storage.compacted import CompactedTopic
from ottla.connect.storage.offsets import OffsetState
from ottla.connect.storage.topics import TopicPlan
from ottla.connect.worker.writers import PlainWriter

STRING = "org.apache.kafka.connect.storage.StringConverter"
JSON = "org.apache.kafka.connect.json.JsonConverter"


class Here(ConnectorContext):
    def job(self, function: Callable[[Any], Any], inputs: Sequence[Any]) -> list[Any]:
        return [function(one) for one in inputs]


@pytest.fixture
def worker(broker: Any) -> Iterator[WorkerContext]:
    client, state = parse_named(broker.bootstrap_servers, {}), OffsetState()
    topic = CompactedTopic(client, TopicPlan("sink-rounds-offsets", "offset.storage.topic", 1), state.apply)
    topic.start()
    writer = PlainWriter(client, topic)
    yield WorkerContext(lambda: None, client, "sink-rounds", topic, state, writer.write, RoundSettings(), True)
    topic.stop()
    writer.close()


@pytest.fixture
def run(worker: WorkerContext) -> Callable[..., None]:
    def run(name: str, sink: type[Any], **config: str) -> None:
        """A connector's life, from its start until there is nothing more to do."""
        given = {key.replace("_", "."): value for key, value in config.items()}
        given = {"key.converter": STRING, "value.converter": STRING, **given}
        rounds = SinkRounds(Here(worker, name, given, lambda topics: None), sink)
        try:
            rounds.begin()
            while rounds.run():
                pass
        finally:
            rounds.close()

    return run


def delete_topic(broker: Any, name: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.delete_topics([name])[name].result(30)


def send(broker: Any, topic: str, values: Sequence[str]) -> None:
    broker.produce(topic, *values)


def test_dead_letters_behind_the_last_written_record_are_there_once(
    broker: Any, run: Callable[..., None], tmp_path: Path
) -> None:
    broker.create_topic("mixed")
    send(broker, "mixed", ["1", "2", "{no json", "{nor this"])
    config = {
        "topics": "mixed", "path": str(tmp_path), "format": "json", "rotate_records": "1", "value_converter": JSON,
        "value_converter_schemas_enable": "false", "errors_tolerance": "all",
        "errors_deadletterqueue_topic_name": "mixed-dead", "errors_deadletterqueue_topic_replication_factor": "1",
    }  # fmt: skip
    for _ in range(3):
        run("mixed", FilesSink, **config)
    assert [record.value for record in broker.records("mixed-dead", count=2)] == [b"{no json", b"{nor this"]
    send(broker, "mixed", ["3"])
    run("mixed", FilesSink, **config)
    assert len(broker.records("mixed-dead", count=2)) == 2
    lines = [path.read_text().strip() for path in sorted(tmp_path.rglob("mixed+*.json"))]
    assert lines == ["1", "2", "3"]
    # A target that was set back, as from a backup, counts: what it lacks is written again.
    sorted(tmp_path.rglob("mixed+*.json"))[-1].unlink()
    run("mixed", FilesSink, **config)
    assert len(list(tmp_path.rglob("mixed+*.json"))) == 3


def test_a_topic_that_was_made_anew_and_is_longer_already_is_read_from_its_start(
    broker: Any, run: Callable[..., None], tmp_path: Path
) -> None:
    path = tmp_path / "out.txt"
    broker.create_topic("renewed")
    send(broker, "renewed", ["old 0", "old 1"])
    run("renewed", FileStreamSink, topics="renewed", file=str(path))
    delete_topic(broker, "renewed")
    broker.create_topic("renewed")
    send(broker, "renewed", [f"new {number}" for number in range(4)])
    run("renewed", FileStreamSink, topics="renewed", file=str(path))
    run("renewed", FileStreamSink, topics="renewed", file=str(path))
    assert path.read_text().split("\n")[2:-1] == ["new 0", "new 1", "new 2", "new 3"]


def test_a_topic_that_is_made_anew_while_a_sink_runs_is_noticed(
    broker: Any, worker: WorkerContext, tmp_path: Path
) -> None:
    """Also by a task that was planned before that: it fails, and what is read next is the new topic."""
    path = tmp_path / "out.txt"
    broker.create_topic("swapped")
    send(broker, "swapped", ["old 0"])
    config = {"key.converter": STRING, "value.converter": STRING, "topics": "swapped", "file": str(path)}
    rounds = SinkRounds(Here(worker, "swapped", config, lambda topics: None), FileStreamSink)
    try:
        rounds.begin()
        rounds.run()
        delete_topic(broker, "swapped")
        broker.create_topic("swapped")
        send(broker, "swapped", ["new 0", "new 1"])
        with pytest.raises(Exception, match="was deleted and made anew"):
            rounds.run()
        rounds.run()
    finally:
        rounds.close()
    assert path.read_text().split("\n")[:-1] == ["old 0", "new 0", "new 1"]


def test_a_target_that_knows_how_far_it_is_takes_no_records_of_another_topic_of_that_name(
    broker: Any, run: Callable[..., None], tmp_path: Path
) -> None:
    config = {"topics": "again", "path": str(tmp_path), "format": "text", "rotate_records": "1"}
    broker.create_topic("again")
    send(broker, "again", ["old 0", "old 1"])
    run("again", FilesSink, **config)
    delete_topic(broker, "again")
    broker.create_topic("again")
    send(broker, "again", [f"new {number}" for number in range(4)])
    with pytest.raises(ConnectorFailure, match="the topic 'again' was deleted and made anew"):
        run("again", FilesSink, **config)
