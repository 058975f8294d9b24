"""Every converter, transform and predicate gives what Kafka Connect's own gives, for random records.

One JVM answers for all of them. The same batches go through the transforms in columns and row by row.
"""

from __future__ import annotations

import base64
import json
import math
import shutil
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest

from ottla.connect.api.config import ConfigInvalid
from ottla.connect.conversion import converters, predicates, sink_side, transforms
from ottla.connect.conversion.arrow import from_python, to_python
from ottla.connect.conversion.rows import in_order
from tests.connect.conversion.batches import HEADERS
from tests.connect.conversion.oracle import random_records
from tests.connect.conversion.oracle.described import normal, records_told, schema_told, value_told
from tests.support.kafka_jars import class_path, quick_java, require_kafka_libs

HERE = Path(__file__).parent
PACKAGE = "org.apache.kafka.connect.transforms"
BATCH = 10
pytestmark = pytest.mark.jvm


class Oracle:
    def __init__(self, folder: Path, libs: Path) -> None:
        self._folder = folder
        classes = folder / "classes"
        subprocess.run(
            ["javac", "-cp", class_path(libs), "-d", str(classes), str(HERE / "ConnectOracle.java")], check=True
        )
        self._process = subprocess.Popen(
            [*quick_java(), "-Duser.timezone=UTC", "-cp", class_path(libs, classes), "ConnectOracle"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=(folder / "stderr").open("w"),
            text=True,
            encoding="utf-8",
        )
        assert self._line() == "ready"

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        assert line, (self._folder / "stderr").read_text()[-2000:]
        return line

    def ask(self, **request: Any) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return json.loads(self._line())

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)


@pytest.fixture(scope="module")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Oracle]:
    libs = require_kafka_libs()
    if shutil.which("javac") is None:
        pytest.skip("there is no Java compiler: install a JDK")
    running = Oracle(tmp_path_factory.mktemp("oracle"), libs)
    yield running
    running.close()


# --- transforms

TRANSFORMS = [name for name in transforms.BY_NAME if name.startswith(f"{PACKAGE}.")]


def batch_of(records: list[dict[str, Any]]) -> Any:
    def data(name: str) -> Any:
        found = [None if each[name] is None else base64.b64decode(each[name]) for each in records]
        return pa.array(found, pa.binary())

    headers = [[{"key": key, "value": base64.b64decode(value)} for key, value in each["headers"]] for each in records]
    return pa.RecordBatch.from_arrays(
        [
            data("key"),
            data("value"),
            pa.array([each["topic"] for each in records], pa.string()),
            pa.array([each["partition"] for each in records], pa.int32()),
            pa.array([each["offset"] for each in records], pa.int64()),
            pa.array([each["timestamp"] for each in records], pa.int64()),
            pa.array(headers, HEADERS),
        ],
        names=["key", "value", "topic", "partition", "offset", "timestamp", "headers"],
    )


def ours(class_name: str, settings: dict[str, str], records: list[dict[str, Any]], *, by_row: bool) -> Any:
    config = {"errors.tolerance": "all", "transforms": "it", "transforms.it.type": class_name}
    config |= {f"transforms.it.{name}": text for name, text in settings.items()}
    try:
        conversion = sink_side(config)
    except ConfigInvalid as error:
        return {"refused": str(error)}
    kind, _ = transforms.BY_NAME[class_name]
    # A null keeps having no schema, so that it can be compared.
    with patch("ottla.connect.conversion.sink.in_order", lambda runs, **_: in_order(runs, merges_nulls=False)):
        if by_row:
            with patch.object(kind, "columns", lambda self, records: None):
                found = conversion.run(batch_of(records))
        else:
            found = conversion.run(batch_of(records))
    told = records_told(found.records)
    failed = {each.offset for each in found.failures}
    return [
        told[offset] if offset in told else {"error": True} if offset in failed else {"dropped": True}
        for offset in range(len(records))
    ]


def comparable(answer: Any) -> Any:
    if isinstance(answer, dict):
        return {"refused": True} if "refused" in answer else answer
    return [{"error": True} if "error" in each else normal(each) for each in answer]


def is_whole_cast_of_a_time(class_name: str, settings: dict[str, str], answer: Any) -> bool:
    return "Cast" in class_name and ":" not in settings["spec"]


def compare_transform(oracle: Oracle, class_name: str, batches: int) -> None:
    name = class_name.removeprefix(f"{PACKAGE}.").partition("$")[0]
    part = "key" if class_name.endswith("$Key") else "value"
    for seed in range(batches):
        random = Random(f"{class_name} {seed}")
        settings = random_records.settings(random, name)
        records = random_records.records(random, BATCH, part=part, shape=random_records.SHAPES.get(name))
        answer = oracle.ask(op="transform", config=settings, records=records, **{"class": class_name})
        wanted = comparable(answer)
        for by_row in (False, True):
            found = comparable(ours(class_name, settings, records, by_row=by_row))
            assert found == wanted, f"seed {seed}, by row: {by_row}, {settings}: {told(records, found, wanted, answer)}"


def told(records: list[dict[str, Any]], found: Any, wanted: Any, answer: Any) -> str:
    """The first record that differs, and in what."""
    if not isinstance(found, list) or not isinstance(wanted, list):
        return f"{found} {answer}"
    record, mine, theirs, raw = next(
        each for each in zip(records, found, wanted, answer, strict=True) if each[1] != each[2]
    )
    given = {part: base64.b64decode(record[part] or "").decode() for part in ("key", "value")}
    if "error" in mine or "error" in theirs:
        return (
            f"{given} gives {mine if 'error' in mine else 'a record'}, and theirs {raw if 'error' in raw else theirs}"
        )
    parts = [(name, mine[name], theirs.get(name)) for name in mine if mine[name] != theirs.get(name)]
    return f"{given} differs: {parts}"


@pytest.mark.parametrize("class_name", TRANSFORMS)
def test_a_transform_gives_what_kafka_connects_gives(oracle: Oracle, class_name: str) -> None:
    compare_transform(oracle, class_name, batches=6)


@pytest.mark.slow
@pytest.mark.parametrize("class_name", TRANSFORMS)
def test_a_transform_gives_what_kafka_connects_gives_for_thousands_of_records(oracle: Oracle, class_name: str) -> None:
    compare_transform(oracle, class_name, batches=300)
