"""`ottla trace`: the path of a record at the prompt, what one may not see, and a watch that is ended."""

from __future__ import annotations

import json
import signal
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, AdminClient, NewTopic
from confluent_kafka.admin import ResourcePatternType as Pattern
from confluent_kafka.admin import ResourceType as Kind

from ottla.testing import Broker
from tests.cli.command import Cli

USERS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="admin" password="secret" user_admin="secret" user_eve="guess";'
)
PROCESS = """
name = "{name}"
within = "1h"

[[step]]
name = "first"
topic = "{name}"
id = "key"

[[step]]
name = "second"
topic = "{name}-2"
id = "key"
"""


def test_a_record_is_traced_over_topics(cli: Cli, name: str, tmp_path: Path) -> None:
    cli.ok("topic", "create", name, f"{name}-2")
    cli.ok("produce", name, "-k", "k", "one", "-q")
    cli.ok("produce", f"{name}-2", "-k", "k", "<b>\x1b[31mtwo</b>", "-q")
    cli.ok("consume", name, "-g", name, "-e")
    picture = tmp_path / "line.svg"
    out = cli.ok("trace", "--since", "-2h", name, "0", "0", "--topics", f"{name}*", "--svg", picture).out
    assert "2 records of this story" in out and "\x1b[31m" not in out
    assert [word for line in out.splitlines() if "read" in line for word in line.split() if word == name]
    assert picture.read_text().startswith("<svg")
    data = cli.ok("trace", "record", name, "0", "0", "--topics", f"{name}*", "--output", "json").data
    assert [hop["topic"] for hop in data["hops"]] == [name, f"{name}-2"]
    assert data["hops"][0]["groups"] == [
        {"group": name, "verdict": "read", "committed_offset": 1, "lag_records": 0, "lag_s": 0.0}
    ]


def test_mistakes_are_one_sentence(cli: Cli, name: str, tmp_path: Path) -> None:
    cli.ok("topic", "create", name)
    cli.ok("produce", name, "-q", "no key")
    assert "Say it with --by." in cli.fails(1, "trace", name, "0", "0")
    assert "'x' is not a number" in cli.fails(2, "trace", name, "x", "0")
    assert "--window takes a time" in cli.fails(2, "trace", name, "0", "0", "--window", "long")
    (tmp_path / "p.toml").write_text("name = ")
    assert "is not TOML" in cli.fails(1, "trace", "watch", tmp_path / "p.toml")


def test_topics_that_one_may_not_read_are_told_and_the_others_searched() -> None:
    properties = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": USERS,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin",
    }
    login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
    with Broker(properties) as broker:
        servers = {"bootstrap.servers": broker.bootstrap_servers, **login}
        as_admin = {**servers, "sasl.username": "admin", "sasl.password": "secret"}
        admin = AdminClient(as_admin)
        for made in admin.create_topics([NewTopic(topic, 1, 1) for topic in ("open", "secret", "open-2")]).values():
            made.result(60)
        # Eve sees that there is a topic `secret`, and may not read it.
        rights = [("open", AclOperation.READ), ("open-2", AclOperation.READ), ("secret", AclOperation.DESCRIBE)]
        bindings = [
            AclBinding(Kind.TOPIC, topic, Pattern.LITERAL, "User:eve", "*", operation, AclPermissionType.ALLOW)
            for topic, operation in rights
        ]
        for made in admin.create_acls(bindings).values():
            made.result(60)
        producer = Producer(as_admin)
        for topic in ("open", "secret", "open-2"):
            producer.produce(topic, "v", "k")
        assert producer.flush(60) == 0
        eve = {**login, "sasl.username": "eve", "sasl.password": "guess"}
        more = [word for setting, value in eve.items() for word in ("-X", f"{setting}={value}")]
        data = Cli(broker.bootstrap_servers).ok("trace", "open", "0", "0", "--output", "json", *more).data
    assert [hop["topic"] for hop in data["hops"]] == ["open", "open-2"]
    told = {topic["topic"]: topic["problem"] for topic in data["searched"]["topics"]}
    assert told["open"] is None and told["open-2"] is None
    assert "TOPIC_AUTHORIZATION_FAILED" in told["secret"]
    assert not data["searched"]["is_complete"]


def test_a_watch_serves_what_it_knows_until_it_is_ended(cli: Cli, name: str, tmp_path: Path) -> None:
    cli.ok("topic", "create", name, f"{name}-2")
    cli.ok("produce", name, "-k", "k", "one", "-q")
    file = tmp_path / "p.toml"
    file.write_text(PROCESS.format(name=name))
    watch = cli.start(
        *("trace", "watch", str(file), "--interval", "0.1", "--listen", "127.0.0.1:0"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert watch.stderr is not None
        ready = watch.stderr.readline().split()
        assert ready[0] == "ready"
        assert _report(ready[1])["counts"]["running"] == 1
        cli.ok("produce", f"{name}-2", "-k", "k", "two", "-q")
        deadline = time.monotonic() + 60
        while _report(ready[1])["counts"]["complete"] != 1 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert _report(ready[1])["counts"]["complete"] == 1
    finally:
        watch.send_signal(signal.SIGINT)
        _, said = watch.communicate(timeout=60)
    assert watch.returncode == 130 and "Traceback" not in said
    assert f"ottla-process-{name}" in cli.ok("group", "list").out


def _report(url: str) -> dict[str, dict[str, int]]:
    deadline = time.monotonic() + 60
    while True:
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                found: dict[str, dict[str, int]] = json.loads(answer.read())
                return found
        except urllib.error.HTTPError as error:
            if error.code != 503 or time.monotonic() > deadline:
                raise
            time.sleep(0.05)
