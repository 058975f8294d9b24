"""`ottla streams` as a command: an application from its file with the life of a pipeline, mistakes in a sentence."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.spark.pipeline.home import Home, Status
from ottla.streams import StreamsBuilder, serdes
from ottla.streams.engine.identity import own_topics, shape_of
from ottla.testing import Broker
from tests.cli.command import Cli
from tests.spark import topics as kafka
from tests.spark.streams.test_application import by_key, produce
from tests.support.kafka_jars import REPO_ROOT

APP = """
from ottla.streams import Application, StreamsBuilder, serdes

builder = StreamsBuilder(key=serdes.string, value=serdes.string)
words = builder.stream({source!r}).map_values(lambda value: value if value != "bad" else 1 // 0)
words.group_by(lambda key, word: word).count(store="counts").to_stream().map_values(str).to({target!r})
app = Application({name!r}, builder, conf={{"spark.ui.enabled": False}})
"""
WORDS = REPO_ROOT / "examples" / "streams" / "word_count.py"


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with Broker() as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def cli(servers: str, tmp_path: Path) -> Cli:
    return Cli(servers, {"OTTLA_PIPELINES": str(tmp_path / "pipelines")})


@pytest.mark.spark
@pytest.mark.xdist_group("spark processes")
@pytest.mark.skipif(shutil.which("java") is None, reason="Java is not installed")
@pytest.mark.timeout(900)  # Spark starts twice, which takes minutes on a busy machine
def test_an_application_runs_once_is_listed_fails_with_a_sentence_and_is_deleted_with_its_state(
    cli: Cli, servers: str, tmp_path: Path
) -> None:
    source, target = kafka.create(servers), kafka.create(servers)
    file = tmp_path / "words.py"
    file.write_text(APP.format(source=source, target=target, name="words"))
    produce(servers, [(source, "k", word, 5) for word in ("a", "b", "a")], {"k": 0})
    run = ("streams", "run", file, "--once", "--master", "local[1]")
    done = cli(*run, timeout_s=240)
    assert done.status == 0, done
    said = [json.loads(line) for line in done.lines]
    assert said[-1]["event"] == "finished"
    assert sum(one["rows_out"] for one in said if one["event"] == "batch") == 3
    assert by_key(servers, target) == {"a": [("1", 5), ("2", 5)], "b": [("1", 5)]}
    (listed,) = cli.ok("streams", "list", "--output", "json").data
    assert (listed["name"], listed["state"], listed["state_entries"]) == ("words", "finished", 2)

    produce(servers, [(source, "k", "bad", 5)], {"k": 0})
    failed = cli(*run, timeout_s=240)
    assert failed.status == 1
    sentence = failed.err.strip().splitlines()[-1]
    assert f"application 'words': the record {source}-0@3 cannot be processed in node KSTREAM-MAPVALUES" in sentence
    assert "ZeroDivisionError" in sentence and "(words.py, line 5)" in sentence

    assert "words-counts-changelog" in cli.ok("topic", "list", "--output", "json").out
    assert cli.ok("streams", "delete", "words", "--yes").out.endswith("deleted words\n")
    assert "words-counts-changelog" not in cli.ok("topic", "list", "--output", "json").out
    assert cli.ok("streams", "list", "--output", "json").data == []


def left_behind(folder: Path, servers: str, name: str, checkpoint: str) -> list[str]:
    """An application that has run here, as far as deleting one goes. Its topics."""
    builder = StreamsBuilder(key=serdes.string, value=serdes.string)
    builder.stream("in").group_by(lambda key, value: value).count(store="counts").to_stream().to("out")
    shape = shape_of(builder.build(), name)
    home = Home(folder, name)
    with home.locked():
        home.write(Status(name, state="stopped", bootstrap=servers, checkpoint=checkpoint))
    noted = home.checkpoint / "ottla" / "application" / "0"
    noted.parent.mkdir(parents=True)
    noted.write_text(json.dumps(shape))
    for topic in own_topics(shape):
        kafka.create(servers, name=topic)
    return own_topics(shape)


def test_deleted_as_a_pipeline_an_application_leaves_no_state_behind(cli: Cli, servers: str, tmp_path: Path) -> None:
    topics = left_behind(tmp_path / "pipelines", servers, "forgotten", checkpoint="")
    assert len(topics) == 3 and all(kafka.exists(servers, topic) for topic in topics)
    cli.ok("pipeline", "delete", "forgotten", "--yes")
    assert not any(kafka.exists(servers, topic) for topic in topics)
    assert cli.ok("pipeline", "list", "--output", "json").data == []


def test_state_that_only_a_checkpoint_elsewhere_knows_is_not_left_behind_silently(
    cli: Cli, servers: str, tmp_path: Path
) -> None:
    topics = left_behind(tmp_path / "pipelines", servers, "elsewhere", checkpoint="s3a://bucket/elsewhere")
    said = cli.fails(1, "pipeline", "delete", "elsewhere", "--yes")
    assert "(the topic 'elsewhere-task-changelog')" in said and "--reset" in said
    cli.ok("pipeline", "delete", "elsewhere", "--yes", "--local-only")
    assert all(kafka.exists(servers, topic) for topic in topics)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1", "has no application"),
        (APP.format(source="no-such-topic", target="out", name="p"), "the topic 'no-such-topic' does not exist"),
        ("from ottla.streams import StreamsBuilder\nStreamsBuilder().stream('a').to('b', name='x y')", "line 2"),
    ],
)
def test_a_bad_file_is_one_sentence_and_status_1(cli: Cli, tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "bad.py"
    file.write_text(text)
    assert said in cli.fails(1, "streams", "run", file)


def test_questions_about_stores_are_answered_where_it_is_told_to(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "app.py"
    file.write_text(APP.format(source="no-such-topic", target="out", name="p"))
    outcome = cli("streams", "run", file, "--http", "127.0.0.1:0")
    assert "does not exist" in outcome.err
    assert json.loads(outcome.lines[0])["address"].startswith("http://127.0.0.1:")
    assert "cannot listen on 192.0.2.99:80" in cli.fails(1, "streams", "run", file, "--http", "192.0.2.99:80")
    assert "--http is 'nowhere', expected HOST:PORT" in cli.fails(2, "streams", "run", file, "--http", "nowhere")


def test_a_topology_is_described_without_spark(cli: Cli, tmp_path: Path) -> None:
    assert "Sink: counts-repartition-sink (topic: counts-repartition)" in cli.ok("streams", "describe", WORDS).out
    assert cli.ok("streams", "describe", WORDS, "--mermaid").out.startswith("flowchart TD\n")
    assert cli.ok("streams", "describe", WORDS, "--svg").out.startswith("<svg ")
    assert "choose one" in cli.fails(2, "streams", "describe", WORDS, "--svg", "--mermaid")
    assert "there is no file" in cli.fails(1, "streams", "describe", tmp_path / "gone.py")


def test_a_file_with_a_builder_alone_is_called_like_the_file(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "large_orders.py"
    file.write_text(
        "from ottla.streams import StreamsBuilder\nbuilder = StreamsBuilder()\nbuilder.stream('a').to('b')\n"
    )
    outcome = cli("streams", "run", file, "--reset")
    assert "Delete the state of 'large-orders' and write everything again" in outcome.err
    assert outcome.status == 1
