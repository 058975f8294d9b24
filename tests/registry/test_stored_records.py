"""What a registry leaves in `_schemas`: Confluent's keys, byte for byte, and the fields of its values in any order."""

from __future__ import annotations

import json
import time
from typing import Any

import httpx
from confluent_kafka import Producer

from ottla.testing import Broker, Registry

KEY = '{{"keytype":"{}","subject":{},"magic":0}}'


def stored(broker: Broker, topic: str) -> list[tuple[str, Any]]:
    return [
        ((record.key or b"").decode(), None if record.value is None else json.loads(record.value))
        for record in broker.records(topic)
    ]


def test_every_change_is_a_record_of_confluents(broker: Broker) -> None:
    settings = {"topic": "_format", "group": "format"}
    with (
        Registry(broker.bootstrap_servers, **settings) as registry,
        httpx.Client(base_url=registry.url, trust_env=False, timeout=60) as http,
    ):
        http.post("/subjects/a/versions", json={"schema": '"int"'})
        http.post("/subjects/b/versions", json={"schema": "{}", "schemaType": "JSON"})
        http.put("/config", json={"compatibility": "full"})
        http.put("/config/a", json={"compatibility": "NONE"})
        http.put("/mode/a", json={"mode": "READONLY"})
        http.delete("/mode/a")
        http.delete("/subjects/a/versions/1")
        http.delete("/subjects/a/versions/1?permanent=true")
        http.delete("/subjects/b")
    found = stored(broker, "_format")
    assert [key for key, _ in found] == [
        '{"keytype":"NOOP","magic":0}',
        '{"keytype":"SCHEMA","subject":"a","version":1,"magic":1}',
        '{"keytype":"SCHEMA","subject":"b","version":1,"magic":1}',
        KEY.format("CONFIG", "null"),
        KEY.format("CONFIG", '"a"'),
        KEY.format("MODE", '"a"'),
        KEY.format("MODE", '"a"'),
        '{"keytype":"SCHEMA","subject":"a","version":1,"magic":1}',
        '{"keytype":"SCHEMA","subject":"a","version":1,"magic":1}',
        KEY.format("CONFIG", '"a"'),
        KEY.format("DELETE_SUBJECT", '"b"'),
    ]
    values = [value for _, value in found]
    assert values[0] is None
    assert values[1].items() >= {"subject": "a", "version": 1, "id": 1, "schema": '"int"', "deleted": False}.items()
    assert "schemaType" not in values[1], "Avro is what a schema is unless it says otherwise"
    assert values[2]["schemaType"] == "JSON"
    assert values[3]["compatibilityLevel"] == "FULL" and values[5] == {"subject": "a", "mode": "READONLY"}
    assert values[6] is None and values[7]["deleted"] is True and values[8] is None
    assert values[9] is None, "the settings of a subject go with it"
    assert values[10] == {"subject": "b", "version": 1}


def test_what_another_registry_writes_meanwhile_is_followed(broker: Broker) -> None:
    """Tombstones, a subject that is cleared, and records that nobody knows, in a topic that is being read."""
    settings = {"topic": "_followed", "group": "followed"}
    with (
        Registry(broker.bootstrap_servers, **settings) as registry,
        httpx.Client(base_url=registry.url, trust_env=False, timeout=60) as http,
    ):
        http.post("/subjects/mine/versions", json={"schema": '"int"'})
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        for number in (5, 6):
            value = {"subject": f"s{number}", "version": 1, "id": number, "schema": '"long"', "deleted": False}
            key = f'{{"keytype":"SCHEMA","subject":"s{number}","version":1,"magic":1}}'
            producer.produce("_followed", json.dumps(value), key)
        producer.produce("_followed", None, '{"keytype":"SCHEMA","subject":"s5","version":1,"magic":1}')
        producer.produce("_followed", b"no json", b"no json")
        producer.produce("_followed", b'{"x":1}', b'{"keytype":"CONTEXT","tenant":"t","context":".","magic":0}')
        producer.produce("_followed", b"{}", b'{"keytype":"SCHEMA","subject":"bad","version":1,"magic":1}')
        producer.produce("_followed", None, b'{"keytype":"NOOP","magic":0}')
        producer.flush(30)
        while http.get("/subjects").json() != ["mine", "s6"]:  # it follows
            time.sleep(0.01)
        reply = http.post("/subjects/next/versions", json={"schema": '"bytes"'})
        assert reply.json()["id"] == 7, "ids of others are not given again"
        assert http.get("/subjects").json() == ["mine", "next", "s6"]
