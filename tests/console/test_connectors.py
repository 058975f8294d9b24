"""Connectors of a real worker: made, changed, checked and deleted, with what it says of each setting at the field.

The worker has no Spark: connectors are left stopped, or fail for the want of it, which is as good a failure as any.
"""

from __future__ import annotations

import contextlib
import html
import itertools
import re
import socket
import threading
from collections.abc import Iterator

import pytest

from ottla.common.passwords import hashed
from ottla.console.connect_client import HIDDEN
from ottla.console.connect_form import form_of, read_settings
from ottla.testing import Broker, Connect
from tests.console.running import RunningConsole, Visitor

FILE_SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
JDBC_SINK = "io.confluent.connect.jdbc.JdbcSinkConnector"
OF_SOMEBODY_ELSE = b'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 6\r\n\r\n["no"]'
EVIL = "<script>alert('x')</script>\"'&"


@pytest.fixture(scope="module")
def worker(broker: Broker) -> Iterator[Connect]:
    with Connect(broker.bootstrap_servers, spark=object()) as running:
        yield running


@pytest.fixture(scope="module")
def visitor(broker: Broker, worker: Connect) -> Iterator[Visitor]:
    # One that does not answer hides nothing of the other.
    with RunningConsole(broker.bootstrap_servers, connect=("http://127.0.0.1:1", worker.url)) as running:
        yield running.visitor()


def fields(worker: Connect, name: str, plugin: str = FILE_SOURCE, **settings: str) -> dict[str, str]:
    given = {f"setting:{key.replace('_', '.')}": value for key, value in settings.items()}
    return {"worker": worker.url, "name": name, "plugin": plugin, "stopped": "1", **given}


def test_a_connector_is_made_changed_and_deleted(visitor: Visitor, worker: Connect, topic: str) -> None:
    choice = visitor.get("/connectors-new", params={"worker": worker.url}).text
    assert "FileStreamSourceConnector" in choice and "JdbcSinkConnector" in choice
    empty = visitor.get("/connectors-new", params={"worker": worker.url, "plugin": FILE_SOURCE})
    assert empty.status_code == 200 and "Missing required" not in empty.text and "Tasks max" in empty.text
    made = visitor.post("/connectors", fields(worker, topic, file="/nowhere", topic=topic))
    assert f"Connector {topic} is made." in made.text and made.url.path == f"/connectors/{topic}"
    assert worker.ask("GET", f"/connectors/{topic}/status")[1]["connector"]["state"] == "STOPPED"
    page = visitor.get(f"/connectors/{topic}/edit").text
    assert 'value="/nowhere"' in page
    again = visitor.post("/connectors", fields(worker, topic, file="/other", topic=topic))
    assert again.status_code == 422 and "already exists" in again.text and 'value="/other"' in again.text
    changed = visitor.post(
        f"/connectors/{topic}/edit", fields(worker, topic, file="/other", topic=topic, tasks_max="2")
    )
    assert f"Connector {topic} is changed: file, tasks.max." in changed.text
    assert worker.ask("GET", f"/connectors/{topic}/config")[1] == {
        "name": topic,
        "connector.class": FILE_SOURCE,
        "file": "/other",
        "topic": topic,
        "tasks.max": "2",
    }
    assert "notice bad" in visitor.post(f"/connectors/{topic}/delete", {"confirm": "no"}).text
    assert "is deleted" in visitor.post(f"/connectors/{topic}/delete", {"confirm": topic}).text
    assert worker.ask("GET", f"/connectors/{topic}")[0] == 404


def test_what_the_worker_finds_wrong_stands_at_the_field(visitor: Visitor, worker: Connect, topic: str) -> None:
    wrong = visitor.post("/connectors", fields(worker, topic, file=EVIL, tasks_max="many"))
    assert wrong.status_code == 422 and "<script>alert" not in wrong.text
    text = html.unescape(wrong.text)
    marked = [part for part in wrong.text.split('<div class="field')[1:] if part.startswith(" wrong")]
    assert [("tasks.max" in part, 'name="setting:topic"' in part) for part in marked] == [(False, True), (True, False)]
    assert "Invalid value many for configuration tasks.max" in text and f'value="{EVIL}"' in text
    assert worker.ask("GET", f"/connectors/{topic}")[0] == 404
    checked = visitor.post("/connectors", {**fields(worker, topic, topic=topic), "check": "1"})
    assert "finds nothing wrong" in checked.text and worker.ask("GET", f"/connectors/{topic}")[0] == 404
    assert "needs a name" in visitor.post("/connectors", fields(worker, "", topic=topic)).text
    lines = {**fields(worker, topic, topic=topic), "others": "no setting"}
    assert "a setting is a line such as" in html.unescape(visitor.post("/connectors", lines).text)


def test_secrets_stay_where_they_are(visitor: Visitor, worker: Connect, topic: str) -> None:
    given = {
        "connector_class": JDBC_SINK,
        "connection_url": "jdbc:postgresql://db/x?user=me&password=S3CRET",
        "connection_user": "me",
        "connection_password": "S3CRET",
        "topics": topic,
    }
    config = {key.replace("_", "."): value for key, value in given.items()}
    assert worker.ask("POST", "/connectors", {"name": topic, "config": config, "initial_state": "STOPPED"})[0] == 201
    page = visitor.get(f"/connectors/{topic}/edit").text
    assert "S3CRET" not in page and "S3CRET" not in visitor.get(f"/connectors/{topic}").text
    shown = {
        **config,
        "connection.password": HIDDEN,
        "connection.url": f"jdbc:postgresql://db/x?user=me&password={HIDDEN}",
    }
    sent = {f"setting:{key}": value for key, value in shown.items() if key != "connector.class"}
    done = visitor.post(f"/connectors/{topic}/edit", {**sent, "setting:connection.user": "you"})
    assert "is changed: connection.user." in done.text and "S3CRET" not in done.text
    stored = worker.ask("GET", f"/connectors/{topic}/config")[1]
    assert stored == {**config, "name": topic, "connection.user": "you"}
    # Whoever sends the secret somewhere else has to know it.
    elsewhere = {**sent, "setting:connection.url": f"jdbc:postgresql://evil/x?user=me&password={HIDDEN}"}
    refused = visitor.post(f"/connectors/{topic}/edit", elsewhere)
    assert refused.status_code == 422 and "write the whole value" in refused.text
    assert worker.ask("GET", f"/connectors/{topic}/config")[1] == stored


def test_a_secret_whose_name_does_not_tell_is_not_shown(visitor: Visitor, worker: Connect, topic: str) -> None:
    config = {
        "connector.class": "HttpSink",
        "http.url": "http://127.0.0.1:1/",
        "http.authorization": "Bearer S3CRET",
        "topics": topic,
    }
    assert worker.ask("POST", "/connectors", {"name": topic, "config": config, "initial_state": "STOPPED"})[0] == 201
    page = visitor.get(f"/connectors/{topic}").text
    assert "http://127.0.0.1:1/" in page and "S3CRET" not in page


def test_connectors_are_shown_with_what_ails_them(visitor: Visitor, worker: Connect, topic: str) -> None:
    worker.create(topic, connector_class=FILE_SOURCE, file=__file__, topic=topic)
    worker.wait_for(topic, "FAILED")
    page = visitor.get("/connectors").text
    assert "does not answer at http://127.0.0.1:1" in page and topic in page and "sparkContext" in page
    assert "Traceback" in visitor.get(f"/connectors/{topic}").text
    assert "stop was asked for" in visitor.post(f"/connectors/{topic}/control", {"action": "stop"}).text
    worker.ask("DELETE", f"/connectors/{topic}")


def test_only_admins_change_connectors_and_nobody_without_the_token(
    broker: Broker, worker: Connect, topic: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    users = tmp_path_factory.mktemp("users") / "users.toml"
    users.write_text(f'[users.ed]\npassword = "{hashed("e")}"\nrole = "editor"\n')
    given = fields(worker, topic, topic=topic)
    with RunningConsole(broker.bootstrap_servers, connect=(worker.url,), users_file=str(users)) as running:
        editor = running.visitor()
        editor.post("/login", {"user": "ed", "password": "e"})
        for path, sent in (
            ("/connectors", given),
            (f"/connectors/{topic}/edit", given),
            (f"/connectors/{topic}/delete", {}),
        ):
            answer = editor.post(path, sent)
            assert answer.status_code == 403 and "admin" in answer.text
            assert editor.post(path, sent, token="wrong").status_code == 403
    with RunningConsole(broker.bootstrap_servers, connect=(worker.url,), is_read_only=True) as running:
        assert running.visitor().post("/connectors", given).status_code == 403
        assert "New connector</a>" not in running.visitor().get("/connectors").text
    assert worker.ask("GET", f"/connectors/{topic}")[0] == 404


def test_a_worker_that_is_none_of_ours_is_not_asked(visitor: Visitor, worker: Connect, topic: str) -> None:
    """The address of a form is one of those the console was started with, or it is ignored."""
    sent = {**fields(worker, topic, topic=topic), "worker": "http://127.0.0.1:9"}
    assert "does not answer at http://127.0.0.1:1 " in html.unescape(visitor.post("/connectors", sent).text)


def test_settings_come_back_as_they_were_shown_or_not_at_all() -> None:
    stored = {"a.password": "x", "b.url": "http://u:pw@h"}
    given = {"a.password": HIDDEN, "b.url": f"http://u:{HIDDEN}@h", "c": " 1 ", "d": ""}
    assert read_settings(given, "e=2\n\n f = g=h ", stored) == (
        {"a.password": "x", "b.url": "http://u:pw@h", "c": "1", "e": "2", "f": "g=h"},
        {},
    )
    config, refused = read_settings({"new.password": HIDDEN}, "", stored)
    assert config == {} and "write the whole value" in refused["new.password"]


def test_an_answer_with_little_in_it_is_a_form_as_well() -> None:
    shown = form_of({"configs": [{"definition": {"name": "x"}}, {}]}, {"x": "1", "y.token": "secret"})
    assert ("x", "1") in [(field.name, field.value) for field in shown.fields]
    assert shown.others == f"y.token={HIDDEN}"


def test_a_secret_is_not_sent_to_another_address_by_somebody_who_does_not_know_it(
    visitor: Visitor, worker: Connect, topic: str
) -> None:
    config = {
        "connector.class": JDBC_SINK,
        "connection.url": "jdbc:postgresql://db/x",
        "connection.user": "me",
        "connection.password": "S3CRET",
        "topics": topic,
    }
    assert worker.ask("POST", "/connectors", {"name": topic, "config": config, "initial_state": "STOPPED"})[0] == 201
    stored = worker.ask("GET", f"/connectors/{topic}/config")[1]
    sent = {f"setting:{key}": value for key, value in config.items() if key != "connector.class"}
    sent["setting:connection.url"] = "jdbc:postgresql://evil/x"
    refused = visitor.post(f"/connectors/{topic}/edit", {**sent, "setting:connection.password": HIDDEN})
    assert refused.status_code == 422 and "connection.url is another address" in refused.text
    assert worker.ask("GET", f"/connectors/{topic}/config")[1] == stored
    assert "is changed" in visitor.post(f"/connectors/{topic}/edit", sent).text


def test_what_somebody_else_has_changed_meanwhile_is_not_undone(visitor: Visitor, worker: Connect, topic: str) -> None:
    config = {"connector.class": FILE_SOURCE, "file": "/one", "topic": topic}
    assert worker.ask("POST", "/connectors", {"name": topic, "config": config, "initial_state": "STOPPED"})[0] == 201
    found = re.search(r'name="version" value="(\w+)"', visitor.get(f"/connectors/{topic}/edit").text)
    assert found is not None
    worker.ask("PUT", f"/connectors/{topic}/config", {**config, "file": "/theirs"})
    mine = {"setting:file": "/one", "setting:topic": topic, "setting:tasks.max": "2", "version": found[1]}
    assert "somebody else has changed" in visitor.post(f"/connectors/{topic}/edit", mine).text
    assert worker.ask("GET", f"/connectors/{topic}/config")[1]["file"] == "/theirs"


def test_something_else_at_the_address_of_a_worker_is_told_in_a_sentence(broker: Broker) -> None:
    """It answers, and not as a worker does."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    with connection:
                        connection.recv(4096)
                        connection.sendall(b"SSH-2.0-OpenSSH\r\n\r\n" if next(turns) % 2 else OF_SOMEBODY_ELSE)

        turns = itertools.count()
        threading.Thread(target=answer, daemon=True).start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        with RunningConsole(broker.bootstrap_servers, connect=(url,)) as running:
            visitor = running.visitor()
            for path in ("/connectors", "/connectors-new", "/connectors/one") * 2:
                page = visitor.get(path)
                assert page.status_code in (200, 502) and "The console failed" not in page.text
