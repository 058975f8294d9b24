"""The whole REST table: each verb at each path is answered with one of Kafka Connect's statuses, and refusals with its
body. What else is in the answers is compared with Kafka Connect's own in `test_like_kafka_connect`."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from ottla.testing import Broker, Connect

VERBS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
# Of a connector `c` that is stopped and has no tasks; without a body. What is not named is 405. HEAD is as GET.
TABLE: dict[str, dict[str, int]] = {
    "/": {"GET": 200},
    "/health": {"GET": 200},
    "/connectors": {"GET": 200, "POST": 400},
    "/connectors/c": {"GET": 200},
    "/connectors/c/config": {"GET": 200, "PUT": 400, "PATCH": 400},
    "/connectors/c/status": {"GET": 200},
    "/connectors/c/pause": {"PUT": 202},
    "/connectors/c/stop": {"PUT": 204},
    "/connectors/c/restart": {"POST": 204},
    "/connectors/c/restart?includeTasks=true": {"POST": 202},
    "/connectors/c/tasks": {"GET": 200},
    "/connectors/c/tasks/0/status": {"GET": 404},
    "/connectors/c/tasks/0/restart": {"POST": 404},
    "/connectors/c/offsets": {"GET": 200, "PATCH": 400, "DELETE": 200},
    "/connectors/c/topics": {"GET": 200},
    "/connectors/c/topics/reset": {"PUT": 202},
    "/connectors/c/resume": {"PUT": 202},
    "/connector-plugins": {"GET": 200},
    "/connector-plugins/FileStreamSource/config": {"GET": 200},
    "/connector-plugins/FileStreamSource/config/validate": {"PUT": 400},
    "/connector-plugins/Nothing/config": {"GET": 404},
    "/admin/loggers": {"GET": 200},
    "/admin/loggers/root": {"GET": 200, "PUT": 400},
    "/nothing": dict.fromkeys(VERBS, 404),
    "/connectors/c/nothing": dict.fromkeys(VERBS, 404),
    "/connectors/nobody": {"GET": 404, "DELETE": 404},
}
KEEPS = {("DELETE", "/connectors/c")}


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    with Broker() as broker, Connect(broker.bootstrap_servers, spark=object()) as worker:
        config = {"connector.class": "FileStreamSource", "file": "/nowhere", "topic": "t"}
        assert worker.ask("POST", "/connectors", {"name": "c", "config": config, "initial_state": "STOPPED"})[0] == 201
        with httpx.Client(base_url=worker.url, trust_env=False, timeout=100) as http:
            yield http


@pytest.mark.parametrize("path", TABLE)
def test_each_verb_is_answered_as_the_table_says(client: httpx.Client, path: str) -> None:
    assert client.put("/connectors/c/stop").status_code == 204  # whichever tests this worker of pytest's has run before
    allowed = TABLE[path] | ({"HEAD": TABLE[path]["GET"]} if "GET" in TABLE[path] else {})
    for verb in VERBS:
        if (verb, path) in KEEPS:
            continue
        told = client.request(verb, path)
        assert told.status_code == allowed.get(verb, 405), (verb, path, told.text)
        if told.status_code >= 400 and verb != "HEAD":
            assert told.headers["content-type"] == "application/json"
            assert set(told.json()) == {"error_code", "message"} and told.json()["error_code"] == told.status_code
        if told.status_code == 405:
            kept = {kept_verb for kept_verb, kept_path in KEEPS if kept_path == path}
            assert told.headers["allow"] == ", ".join(sorted(allowed.keys() | kept)), (verb, path)
        elif told.status_code == 204:
            assert told.content == b""


def test_a_connector_that_is_deleted_is_gone(client: httpx.Client) -> None:
    config = {"connector.class": "FileStreamSource", "file": "/nowhere", "topic": "t"}
    made = client.post("/connectors", json={"name": "d", "config": config, "initial_state": "STOPPED"})
    assert made.status_code == 201
    assert client.delete("/connectors/d").status_code == 204
    assert client.get("/connectors").json() == ["c"]


def test_a_path_that_ends_in_a_slash_is_the_same(client: httpx.Client) -> None:
    for path in ("/connectors", "/connectors/c/status", "/connector-plugins"):
        assert client.get(f"{path}/").json() == client.get(path).json()
    assert client.post("/connectors/", json={}).status_code == 400
    assert client.get("/connectors/c/nothing/").status_code == 404


@pytest.mark.parametrize("name", [".", "..", "a/b", " a", "a\n", ""])
def test_a_name_that_no_path_can_have_is_refused(client: httpx.Client, name: str) -> None:
    config = {"connector.class": "FileStreamSource", "file": "/nowhere", "topic": "t"}
    made = client.post("/connectors", json={"name": name, "config": config, "initial_state": "STOPPED"})
    assert made.status_code == 400 and "no name for a connector" in made.json()["message"]


@pytest.mark.parametrize("name", ["a b", "größe 🦦", "a%2Fb", "a?b", "a#b", 'a"b', "x" * 300])
def test_any_other_name_finds_its_connector(client: httpx.Client, name: str) -> None:
    config = {"connector.class": "FileStreamSource", "file": "/nowhere", "topic": "t"}
    made = client.post("/connectors", json={"name": name, "config": config, "initial_state": "STOPPED"})
    assert made.status_code == 201
    place = made.headers["location"]
    assert client.get(place).json()["name"] == name
    assert client.delete(place).status_code == 204
