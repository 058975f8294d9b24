"""Flink's serialisers for Confluent's registry, which are on Maven Central, beside our readers and writers.

Apicurio's serdes are there too, but "Confluent-compatible" (`apicurio.registry.as-confluent`) means the form of ids in
their bytes only: `apicurio.registry.url` is asked by the API of their own registry. Confluent's serdes are not there.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from pathlib import Path

import pyarrow as pa
import pytest

from ottla.schemas.columns import decoder_for
from ottla.schemas.encoding import encoder_for
from ottla.schemas.registry import SchemaRegistry
from ottla.testing import Registry
from tests.support.kafka_jars import flink_serde_jars, quick_java, registry_client_jars

pytestmark = pytest.mark.jvm

WRITTEN = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "customer", "type": "string"}],
}
# Newer: what it has more, it has a default for.
READER = WRITTEN | {"fields": [*WRITTEN["fields"], {"name": "note", "type": "string", "default": "none"}]}


def test_what_flink_writes_is_read_into_columns_and_what_columns_write_is_read_by_flink(registry: Registry) -> None:
    jars = [*registry_client_jars(), *flink_serde_jars()]
    if not flink_serde_jars() or shutil.which("java") is None:
        pytest.skip("Flink's serialisers are not there: run `python tools/fetch_jars.py registry-java flink-serdes`")
    program = Path(__file__).with_name("FlinkSerdes.java")
    texts = [json.dumps(schema) for schema in (WRITTEN, READER)]
    command = [*quick_java(), "-cp", os.pathsep.join(map(str, jars)), str(program), registry.url, "flink-value", *texts]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdin is not None and running.stdout is not None
        value = base64.b64decode(running.stdout.readline())
        there = SchemaRegistry(registry.url, subject="flink-value")
        schema = there.schema()
        rows, reasons = decoder_for(there, schema).decode(pa.array([value]))
        assert reasons.to_pylist() == [None] and rows.to_pylist() == [{"id": 7, "customer": "Ada"}]
        kind = pa.struct([("id", pa.int64()), ("customer", pa.string())])
        ours = encoder_for(there, schema, ("id", "customer")).encode(pa.array([{"id": 8, "customer": "Bob"}], kind))
        running.stdin.write(base64.b64encode(ours[0].as_py()).decode() + "\n")
        running.stdin.flush()
        assert json.loads(running.stdout.readline()) == {"id": 8, "customer": "Bob", "note": "none"}
    assert running.returncode == 0
