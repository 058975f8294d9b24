"""`ottla streams run --reprocess` and `ottla streams switch`: a changed program does all its work again beside the old
run, and takes its place by one command."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
import pytest

from ottla.testing import Broker
from tests.cli.command import Cli
from tests.spark import topics as kafka
from tests.spark.streams.test_application import by_key, produce

APP = """
from ottla.streams import Application, StreamsBuilder, serdes

builder = StreamsBuilder(key=serdes.string, value=serdes.string)
words = builder.stream({source!r}).group_by(lambda key, word: word)
words.count(store="counts").to_stream().map_values({mapper}).to({target!r})
app = Application("words", builder, conf={{"spark.ui.enabled": False}})
"""


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with Broker() as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def cli(servers: str, tmp_path: Path) -> Cli:
    return Cli(servers, {"OTTLA_PIPELINES": str(tmp_path / "pipelines")})


def committed(servers: str, group: str, topic: str) -> int:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": servers, "group.id": group})
    try:
        (found,) = consumer.committed([confluent_kafka.TopicPartition(topic, 0)], 30)
        return int(found.offset)
    finally:
        consumer.close()


def values_from(servers: str, topic: str, offset: int) -> list[str]:
    return [row[3].decode() for row in sorted(kafka.consumed(servers, topic)) if row[1] >= offset]


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.xdist_group("spark processes")
@pytest.mark.skipif(shutil.which("java") is None, reason="Java is not installed")
@pytest.mark.timeout(1200)  # Spark starts three times
def test_a_changed_program_does_its_work_again_and_takes_the_place_of_the_old_run(
    cli: Cli, servers: str, tmp_path: Path
) -> None:
    source, target = kafka.create(servers), kafka.create(servers)
    file = tmp_path / "words.py"
    run = ("streams", "run", file, "--once", "--master", "local[1]")
    file.write_text(APP.format(source=source, target=target, mapper="str"))
    assert "has not run here" in cli.fails(1, *run, "--reprocess")
    produce(servers, [(source, "k", word, time_ms) for word, time_ms in (("a", 10), ("b", 20), ("a", 30))], {"k": 0})
    assert cli(*run, timeout_s=240).status == 0
    old = by_key(servers, target)
    assert old == {"a": [("1", 10), ("2", 30)], "b": [("1", 20)]}
    assert "no run to switch" in cli.fails(1, "streams", "switch", "words", "--yes")
    # A reader of the old topic that has still to read what came last.
    consumer = confluent_kafka.Consumer({"bootstrap.servers": servers, "group.id": "board"})
    last = next(row[1] for row in sorted(kafka.consumed(servers, target)) if row[4] == 30)
    consumer.commit(offsets=[confluent_kafka.TopicPartition(target, 0, last)], asynchronous=False)
    consumer.close()

    # The new program, beside the old output.
    file.write_text(APP.format(source=source, target=target, mapper="lambda count: f'{count} times'"))
    produce(servers, [(source, "k", "b", 40)], {"k": 0})
    done = cli(*run, "--reprocess", timeout_s=240)
    assert done.status == 0, done
    new = f"{target}.v2"
    assert by_key(servers, target) == old
    assert by_key(servers, new) == {"a": [("1 times", 10), ("2 times", 30)], "b": [("1 times", 20), ("2 times", 40)]}
    assert cli.ok("streams", "status", "words", "--output", "json").data["name"] == "words"
    assert {one["name"] for one in cli.ok("streams", "list", "--output", "json").data} == {"words", "words-v2"}
    assert "other runs (words-v2)" in cli.fails(1, "streams", "delete", "words", "--yes")

    said = cli.ok("streams", "switch", "words", "--group", "board", "--yes").out
    assert f"consumers now read {new} instead of {target}" in said
    assert values_from(servers, new, committed(servers, "board", new)) == ["2 times", "2 times"]
    status = cli.ok("streams", "status", "words", "--output", "json").data
    assert (status["name"], status["topics"]) == ("words-v2", [new])
    assert by_key(servers, target) == old

    # Its file runs on as the new run, with its state.
    produce(servers, [(source, "k", "a", 50)], {"k": 0})
    assert cli(*run, timeout_s=240).status == 0
    assert by_key(servers, new)["a"][-1] == ("3 times", 50)

    dropped = json.loads(cli.ok("streams", "switch", "words", "--drop-old", "--yes", "--output", "json").out)
    assert dropped[0]["dropped"] == ["words"] and dropped[0]["in_charge"] == "words-v2"
    for topic in (target, "words-counts-changelog", "words-task-changelog"):
        assert not kafka.exists(servers, topic), topic
    assert kafka.exists(servers, new) and kafka.exists(servers, "words-v2-counts-changelog")
    assert cli.ok("streams", "status", "words", "--output", "json").data["name"] == "words-v2"
