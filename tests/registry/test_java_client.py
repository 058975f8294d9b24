"""Confluent's own Java client, as it is inside Flink's jar on Maven Central."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from ottla.testing import Registry
from tests.support.kafka_jars import registry_client_jars

pytestmark = pytest.mark.jvm

ANSWERS = """registered: true
by id: true
by subject and id: true
version: 1
id: true
compatible: true
incompatible: false
why: true
refused: 409 40901
latest: 2 AVRO true
metadata: true
versions: [1, 2]
subjects: true
by prefix: [java-value]
of id: [java-value]
level: FULL FULL
mode: READONLY READONLY
references: 1 Trip
unknown: 404 40403
deleted version: 2
deleted: [1] [1, 2]
"""


def test_confluents_java_client_is_answered_as_it_expects(registry: Registry) -> None:
    jars = registry_client_jars()
    if not jars or shutil.which("java") is None:
        pytest.skip("the Java client is not there: run `python tools/fetch_jars.py registry-java`")
    source = Path(__file__).with_name("ConfluentClient.java")
    command = ["java", "-Xshare:auto", "-cp", os.pathsep.join(map(str, jars)), str(source), registry.url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ANSWERS
