"""Records of the three topics, in Kafka Connect's formats."""

from __future__ import annotations

import json

from ottla.connect.storage import configs, statuses
from ottla.connect.storage.configs import ConfigState, Restart
from ottla.connect.storage.offsets import OffsetState
from ottla.connect.storage.statuses import Status, StatusState
from ottla.connect.worker.properties import parse_properties


def test_a_stopped_connector_is_paused_to_older_workers() -> None:
    key, value = configs.target_record("orders", configs.STOPPED)
    assert (key, json.loads(value or b"")) == (b"target-state-orders", {"state": "PAUSED", "state.v2": "STOPPED"})


def test_tasks_count_once_they_are_committed() -> None:
    state = ConfigState()
    first, second, commit = configs.task_records("a-b", [{"n": "0"}, {"n": "1"}])
    state.apply(*first)
    state.apply(*second)
    assert state.tasks == {}
    state.apply(*commit)
    assert state.tasks == {"a-b": [{"n": "0"}, {"n": "1"}]}


def test_a_deleted_connector_leaves_nothing() -> None:
    state = ConfigState()
    records = [configs.connector_record("x", {"name": "x"}), configs.target_record("x", configs.PAUSED)]
    for record in (*records, *configs.task_records("x", [{}]), *configs.delete_records("x")):
        state.apply(*record)
    assert (state.configs, state.tasks, state.targets) == ({}, {}, {})
    assert state.target("x") == configs.STARTED


def test_a_restart_is_heard_of_once_somebody_listens() -> None:
    state, heard = ConfigState(), []
    record = configs.restart_record(Restart("x", True, False))
    state.apply(*record)
    state.on_restart = heard.append
    state.apply(*record)
    assert heard == [Restart("x", True, False)]


def test_what_others_wrote_is_passed_over() -> None:
    state = ConfigState()
    for key, value in (
        (b"session-key", b"{}"),
        (b"what", b"{}"),
        (None, None),
        (b"connector-x", b"[]"),
        (b"\xff", b""),
    ):
        state.apply(key, value)
    assert state.configs == {}


def test_states_have_kafkas_fields() -> None:
    key, value = statuses.task_record("x", 3, Status("FAILED", "host:1", 7, "why", "1.0"))
    assert key == b"status-task-x-3"
    assert json.loads(value or b"") == {
        "state": "FAILED",
        "trace": "why",
        "worker_id": "host:1",
        "generation": 7,
        "version": "1.0",
    }
    state = StatusState()
    state.apply(key, value)
    assert state.tasks["x"][3] == Status("FAILED", "host:1", 7, "why", "1.0")
    state.apply(key, None)
    assert state.tasks["x"] == {}


def test_topics_of_a_connector_are_told_apart_by_the_last_part_of_the_key() -> None:
    state = StatusState()
    state.apply(*statuses.topic_record("x", "orders", 0, 1))
    assert list(state.topics["x"]) == ["orders"]
    state.apply(*statuses.topic_record("x", "orders", None, 1))
    assert list(state.topics["x"]) == []


def test_an_offset_keeps_the_key_that_it_was_first_written_with() -> None:
    state = OffsetState()
    key = b'["x",{"b":1,"a":2}]'
    state.apply(key, b'{"position":3}')
    assert state.record("x", {"a": 2, "b": 1}, {"position": 4}) == (key, b'{"position":4}')
    assert state.record("x", {"a": 9}, None) == (b'["x",{"a":9}]', None)
    assert list(state.of("x").values()) == [{"position": 3}]


def test_keys_of_other_connectors_that_are_no_json_do_no_harm() -> None:
    state = OffsetState()
    for key in (None, b"", b"\x00\x01", b'"x"', b"[1]", b'["x", 3]'):
        state.apply(key, b"{}")
    assert state.listed("x") == []


def test_property_files_are_read_as_java_reads_them() -> None:
    text = "# comment\n! too\na=1\n b : 2\nc 3\nd=one\\\n   two\ne=\\u00e4\\t|\nf\nwith\\ space=x\\=y\n\n"
    assert parse_properties(text) == {
        "a": "1",
        "b": "2",
        "c": "3",
        "d": "onetwo",
        "e": "ä\t|",
        "f": "",
        "with space": "x=y",
    }


def test_no_record_of_somebody_elses_stops_who_reads_the_topic_of_offsets() -> None:
    state = OffsetState()
    for key, value in (
        (b'[["a"],{"p":1}]', b"{}"),
        (b'[{"a":1},{"p":1}]', b"{}"),
        (b'[null,{"p":1}]', b"{}"),
        (b'["a",{"p":1}]', b"[]"),
        (b'["a",{"p":1}]', b"7"),
        (b"[" * 100_000, b"{}"),
        (b"7", b"{}"),
        (None, None),
    ):
        state.apply(key, value)
    assert state.listed("a") == []
    state.apply(b'["a",{"p":1}]', b'{"at":1}')
    assert state.of("a") == {'{"p":1}': {"at": 1}}


def test_settings_without_a_value_are_none_and_others_are_texts() -> None:
    """Kafka Connect keeps nulls of configurations; a record that REST has not written may have numbers."""
    state = ConfigState()
    state.apply(b"connector-x", b'{"properties":{"name":"x","empty":null,"tasks.max":2,"flag":true}}')
    assert state.configs == {"x": {"name": "x", "tasks.max": "2", "flag": "true"}}
    state.apply(b"connector-y", b"[" * 100_000)
    assert list(state.configs) == ["x"]
