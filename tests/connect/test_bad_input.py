"""What a person gets wrong is answered with a sentence that names it, over REST and on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ottla.common.errors import OttlaError
from ottla.connect import plugins
from ottla.connect.rounds.context import ConnectorContext
from ottla.connect.rounds.creating import Rule, topic_creation
from ottla.connect.validation import validate
from ottla.connect.worker.settings import parse_worker

FILES = {"connector.class": "FilesSink", "path": "/nowhere", "format": "parquet", "topics": "t"}
GENERATOR = {"connector.class": "DataGenerator", "topic": "t"}
BAD = [
    (
        {"connector.class": "Nothing"},
        "Failed to find any class that implements Connector and which name matches Nothing",
    ),
    ({}, "contains no connector type"),
    ({**FILES, "format": "xml"}, "Invalid value xml for configuration format: String must be one of: csv, json, orc"),
    ({"connector.class": "FilesSink", "topics": "t"}, 'Missing required configuration "path" which has no default'),
    (
        {**FILES, "rotate.records": "many"},
        "Invalid value many for configuration rotate.records: Not a number of type INT",
    ),
    ({**FILES, "topics.regex": "("}, "Invalid value ( for configuration topics.regex"),
    (
        {**FILES, "errors.deadletterqueue.topic.name": "t"},
        "the topic of dead letters 't' is also read by the connector",
    ),
    ({**FILES, "transforms": "a", "transforms.a.type": "Nothing"}, "Class Nothing could not be found"),
    ({**FILES, "value.converter": "Nothing"}, "Class Nothing could not be found"),
    ({**FILES, "include.metadata": "perhaps"}, "Expected value to be either true or false"),
    ({**GENERATOR, "offsets.storage.topic": "x"}, "a connector here has no topic of offsets of its own"),
    ({**GENERATOR, "topic": "${file:/etc/secrets:topic}"}, "the worker has no config provider 'file'"),
    ({**GENERATOR, "rate": "-1"}, "Value must be at least 0"),
    ({**GENERATOR, "tasks.max": "2000000000"}, "Value must be at most 10000"),
    ({**GENERATOR, "deep": {"er": 1}}, "a flat map of names to texts"),
    ({"connector.class": "HttpSink", "topics": "t", "http.url": "ftp://x"}, "expected http://HOST/PATH"),
    (
        {"connector.class": "HttpSink", "topics": "t", "http.url": "http://x", "http.headers": "x"},
        "'x' is not NAME: VALUE",
    ),
]


def test_a_configuration_that_is_wrong_names_its_setting(connect: Any) -> None:
    for config, sentence in BAD:
        status, answer = connect.ask("POST", "/connectors", {"name": "wrong", "config": config})
        assert status == 400, (config, answer)
        assert sentence in answer["message"], (config, answer["message"])
    assert connect.ask("GET", "/connectors/wrong")[0] == 404


def test_requests_that_make_no_sense_are_refused_with_a_sentence(connect: Any) -> None:
    for method, path, body, wanted, sentence in (
        ("POST", "/connectors", [], 400, "a JSON object"),
        ("POST", "/connectors", {"name": "x"}, 400, "is created with"),
        ("POST", "/connectors", {"name": "a/b", "config": GENERATOR}, 400, "is no name for a connector"),
        (
            "POST",
            "/connectors",
            {"name": "x", "config": GENERATOR, "initial_state": "FAST"},
            400,
            "initial_state is 'FAST'",
        ),
        ("PUT", "/connectors/x", {}, 405, "405"),
        ("GET", "/connectors/x/tasks/one/status", None, 404, "404"),
    ):
        status, answer = connect.ask(method, path, body)
        assert (status, sentence in answer["message"]) == (wanted, True), (method, path, answer)


def test_a_file_that_is_not_what_it_is_said_to_be_fails_with_a_sentence(connect: Any, tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_text("no Parquet at all, but long enough to look into")
    connect.create("odd", connector_class="FilesSource", path=tmp_path, format="parquet", topic="odd")
    trace = connect.wait_for("odd", "FAILED")["connector"]["trace"]
    assert "a.parquet cannot be read as parquet" in trace.partition("\n")[0]
    assert connect.ask("DELETE", "/connectors/odd")[0] == 204


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"listeners": "https://0.0.0.0:8083"}, "which needs a certificate"),
        ({"listeners": "here"}, "is no place to listen"),
        ({"session.timeout.ms": "soon"}, "session.timeout.ms is 'soon'"),
        ({"topic.creation.enable": "maybe"}, "topic.creation.enable is 'maybe'"),
        ({"bootstrap.servers": "nowhere"}, "is not of the form host:port"),
        ({"security.protocol": "PIGEON"}, "PIGEON"),
    ],
)
def test_a_worker_that_is_told_nonsense_says_so(given: dict[str, str], sentence: str) -> None:
    with pytest.raises(OttlaError) as caught:
        parse_worker(given)
    assert sentence in str(caught.value)


def test_no_configuration_plans_more_tasks_than_a_worker_can_hold() -> None:
    """Also one that was written by somebody who does not mind."""
    context = ConnectorContext(None, "x", {"tasks.max": "2000000000"}, lambda topics: None)  # type: ignore[arg-type]
    assert context.tasks_max == 10_000
    generator = plugins.find("DataGenerator")
    told = validate(generator, {**GENERATOR, "name": "x", "tasks.max": "2000000000"}, {})
    assert [one["value"]["errors"] for one in told["configs"] if one["value"]["name"] == "tasks.max"] == [
        ["Invalid value 2000000000 for configuration tasks.max: Value must be at most 10000"]
    ]


def test_names_of_kafka_connect_find_our_connectors() -> None:
    for name in (
        "org.apache.kafka.connect.file.FileStreamSourceConnector",
        "FileStreamSourceConnector",
        "FileStreamSource",
        "ottla.connect.connectors.file_stream.FileStreamSource",
    ):
        assert plugins.find(name).connector.__name__ == "FileStreamSource"


def test_rules_for_new_topics_are_those_of_their_group() -> None:
    config = {
        "topic.creation.groups": "big",
        "topic.creation.big.include": "log-.*, raw",
        "topic.creation.big.exclude": "log-small",
        "topic.creation.big.partitions": "12",
        "topic.creation.big.cleanup.policy": "compact",
        "topic.creation.default.partitions": "2",
        "topic.creation.default.replication.factor": "1",
    }
    big, default = topic_creation(config, is_enabled=True).rules
    assert (big.partitions, big.replication, big.settings) == (12, -1, {"cleanup.policy": "compact"})
    assert [big.is_for(name) for name in ("log-a", "raw", "log-small", "other")] == [True, True, False, False]
    assert default == Rule((".*",), (), 2, 1, {})
    with pytest.raises(OttlaError, match=r"topic.creation.big.partitions is 'x'"):
        topic_creation({**config, "topic.creation.big.partitions": "x"}, is_enabled=True)
