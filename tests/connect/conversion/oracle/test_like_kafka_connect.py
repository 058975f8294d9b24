"""Every converter, transform and predicate gives what Kafka Connect's own gives, for random records.

One JVM answers for all of them. The same batches go through the transforms in columns and row by row.
"""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest

from ottla.connect.api.config import ConfigInvalid
from ottla.connect.conversion import converters, predicates, sink_side, transforms
from ottla.connect.conversion.arrow import to_python
from ottla.connect.conversion.rows import in_order
from tests.connect.conversion.batches import HEADERS
from tests.connect.conversion.oracle import random_records
from tests.connect.conversion.oracle.described import is_beyond_python, normal, records_told, schema_told, value_told
from tests.support.kafka_jars import class_path, quick_java, require_kafka_libs

HERE = Path(__file__).parent
PACKAGE = "org.apache.kafka.connect.transforms"
BATCH = 12
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
        told.get(offset, {"error": True} if offset in failed else {"dropped": True}) for offset in range(len(records))
    ]


def with_our_limits(found: Any, wanted: Any, given: list[bytes]) -> Any:
    """What fails with us, as docs/connect-transforms.md says."""
    if not isinstance(found, list) or not isinstance(wanted, list):
        return wanted
    return [
        mine if "error" in mine and (is_beyond_python(theirs) or b"-9223372036854775808" in data) else theirs
        for mine, theirs, data in zip(found, wanted, given, strict=True)
    ]


def comparable(answer: Any) -> Any:
    if isinstance(answer, dict):
        return {"refused": True} if "refused" in answer else answer
    return [{"error": True} if "error" in each else normal(each) for each in answer]


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
            expected = with_our_limits(found, wanted, [base64.b64decode(each[part] or "") for each in records])
            assert found == expected, (
                f"seed {seed}, by row: {by_row}, {settings}: {told(records, found, expected, answer)}"
            )


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


# --- converters

CONVERTERS = [each.class_name for each in converters.ALL if each.class_name.startswith("org.apache.kafka.")]


def converter_of(class_name: str, config: dict[str, str]) -> converters.Converter:
    kind = converters.BY_NAME[class_name]
    return kind(kind.config_def.parse(config), is_key=False)


def decoded(class_name: str, config: dict[str, str], data: list[bytes | None]) -> list[Any]:
    converter, found = converter_of(class_name, config), [dict[str, Any]() for _ in data]
    if class_name.endswith("SimpleHeaderConverter"):
        return [_header_told(converter, each) for each in data]
    topics = pa.array(["t"] * len(data), pa.string())
    pieces = converter.decode(topics, pa.array(data, pa.binary()), lambda at, _: found[at].update(error=True))
    for piece in pieces:
        at = range(len(data)) if piece.at is None else piece.at.to_pylist()
        schema = piece.column.schema
        for place, value in zip(at, to_python(piece.column), strict=True):
            found[place].update(schema=schema_told(schema), value=value_told(schema, value))
    return found


def _header_told(converter: converters.Converter, data: bytes | None) -> Any:
    schema, value = converter.decode_header("t", "h", data)
    return {"schema": schema_told(schema), "value": value_told(schema, value)}


def compare_decoding(oracle: Oracle, class_name: str, batches: int) -> None:
    simple = class_name.rpartition(".")[2]
    for seed in range(batches):
        random = Random(f"{class_name} {seed}")
        config = random_records.converter_config(random, simple)
        data = [random_records.data(random, simple, config) for _ in range(BATCH)]
        told = [None if each is None else base64.b64encode(each).decode() for each in data]
        request = {"class": class_name, "header": simple == "SimpleHeaderConverter"}
        answer = oracle.ask(op="decode", config=config, data=told, **request)
        if "refused" in answer:
            with pytest.raises(Exception, match=r"."):
                decoded(class_name, config, data)
            continue
        found = comparable(decoded(class_name, config, data))
        wanted = with_our_limits(found, comparable(answer), [each or b"" for each in data])
        assert found == wanted, f"seed {seed}, {config}: {first(data, found, wanted, answer)}"


def first(data: list[Any], found: Any, wanted: Any, answer: Any) -> Any:
    return next(each for each in zip(data, found, wanted, answer, strict=True) if each[1] != each[2])


def encoded(class_name: str, config: dict[str, str], data: list[bytes | None]) -> list[Any]:
    converter, found = converter_of(class_name, config), [dict[str, Any]() for _ in data]
    given = converter_of("JsonConverter", {})
    topics = pa.array(["t"] * len(data), pa.string())
    pieces = given.decode(topics, pa.array(data, pa.binary()), lambda at, _: found[at].update(error=True))
    for piece in pieces:
        at = list(range(len(data))) if piece.at is None else piece.at.to_pylist()
        if class_name.endswith("SimpleHeaderConverter"):
            for place, value in zip(at, to_python(piece.column), strict=True):
                found[place].update(data=converter.encode_header("t", "h", piece.column.schema, value))
            continue

        def on_failure(place: int, _: Exception, at: list[int] = at) -> None:
            found[at[place]].update(error=True)

        for place, value in zip(at, converter.encode(topics, piece.column, on_failure).to_pylist(), strict=True):
            found[place].update(data=value)
    return found


def readable(answer: Any, simple: str) -> Any:
    found = []
    for each in answer:
        if "error" in each:
            found.append({"error": True})
            continue
        data = base64.b64decode(each["data"]) if isinstance(each["data"], str) else each["data"]
        found.append({"data": _numbers(json.loads(data)) if simple == "JsonConverter" and data is not None else data})
    return found


def _numbers(tree: Any) -> Any:
    """Maps may be in another order, and numbers in another form."""
    if isinstance(tree, list):
        found = [_numbers(each) for each in tree]
        is_map = all(isinstance(each, list) and len(each) == 2 for each in found)
        return sorted(found, key=repr) if is_map else found
    if isinstance(tree, dict):
        return {name: _numbers(each) for name, each in tree.items()}
    return tree


def compare_encoding(oracle: Oracle, class_name: str, batches: int) -> None:
    simple = class_name.rpartition(".")[2]
    kinds = {
        "ByteArrayConverter": ["bytes", "bytes", "string", "Decimal"],
        "StringConverter": [
            "string",
            "int32",
            "int64",
            "double",
            "float",
            "boolean",
            "Decimal",
            "Timestamp",
            "array",
            "struct",
        ],
        "BooleanConverter": ["boolean", "boolean", "int8"],
        "ShortConverter": ["int16", "int16", "int32"],
        "IntegerConverter": ["int32", "int32", "Date"],
        "LongConverter": ["int64", "int64", "Timestamp", "int32"],
        "FloatConverter": ["float", "float", "double"],
        "DoubleConverter": ["double", "double", "float"],
        "SimpleHeaderConverter": [
            "string",
            "int32",
            "double",
            "float",
            "boolean",
            "bytes",
            "Decimal",
            "Timestamp",
            "Date",
            "Time",
            "array",
            "struct",
        ],
    }.get(simple)
    for seed in range(batches):
        random = Random(f"{class_name} {seed}")
        config = random_records.converter_config(random, simple)
        config.pop("schema.content", None)
        data: list[bytes | None] = []
        for _ in range(BATCH):
            if random.random() < 0.1:
                made = random.choice([None, random_records.envelope(None, random_records.tree(random, 0))])
            else:
                of = random_records.schema(random, 1 if kinds else 3, kinds=kinds)
                made = random_records.envelope(of, random_records.payload(random, of, valid=True))
            data.append(made)
        told = [None if each is None else base64.b64encode(each).decode() for each in data]
        request = {"class": class_name, "header": simple == "SimpleHeaderConverter"}
        answer = oracle.ask(op="encode", config=config, data=told, **request)
        found, wanted = readable(encoded(class_name, config, data), simple), readable(answer, simple)
        if simple in ("StringConverter", "SimpleHeaderConverter"):
            # Java writes the address of an array of bytes, and maps in the order of their hashes.
            for at, theirs in enumerate(wanted):
                if b"[B@" in (theirs.get("data") or b"").replace(b"\0", b"") or b'"map"' in (data[at] or b""):
                    found[at] = theirs
        assert found == wanted, f"seed {seed}, {config}: {first(data, found, wanted, answer)}"


@pytest.mark.parametrize("class_name", CONVERTERS)
def test_a_converter_reads_what_kafka_connects_reads(oracle: Oracle, class_name: str) -> None:
    compare_decoding(oracle, class_name, batches=6)


@pytest.mark.parametrize("class_name", CONVERTERS)
def test_a_converter_writes_what_kafka_connects_writes(oracle: Oracle, class_name: str) -> None:
    compare_encoding(oracle, class_name, batches=6)


@pytest.mark.slow
@pytest.mark.parametrize("class_name", CONVERTERS)
def test_a_converter_is_like_kafka_connects_for_thousands_of_records(oracle: Oracle, class_name: str) -> None:
    compare_decoding(oracle, class_name, batches=300)
    compare_encoding(oracle, class_name, batches=300)


# --- predicates

PREDICATES = {
    "HasHeaderKey": lambda random: {"name": random.choice(random_records.NAMES[:4])},
    "RecordIsTombstone": lambda random: {},
    "TopicNameMatches": lambda random: {"pattern": random.choice(["orders.*", "a.b", "\\p{Alpha}+", "[xy]\\d", "o"])},
}


def compare_predicate(oracle: Oracle, name: str, batches: int) -> None:
    class_name = f"{predicates.PACKAGE}.{name}"
    for seed in range(batches):
        random = Random(f"{name} {seed}")
        settings = PREDICATES[name](random)
        records = random_records.records(random, BATCH)
        config = {"errors.tolerance": "all", "transforms": "f", "transforms.f.type": "Filter", "predicates": "p"}
        config |= {"transforms.f.predicate": "p", "predicates.p.type": class_name}
        config |= {f"predicates.p.{key}": text for key, text in settings.items()}
        found = sink_side(config).run(batch_of(records))
        kept = {offset for each in found.records for offset in each.offsets.to_pylist()}  # type: ignore[union-attr]
        failed = {each.offset for each in found.failures}
        for record in records:
            if record["offset"] not in failed:
                answer = oracle.ask(op="predicate", config=settings, records=[record], **{"class": class_name})
                assert answer == [record["offset"] not in kept], (settings, record)


@pytest.mark.parametrize("name", PREDICATES)
def test_a_predicate_chooses_what_kafka_connects_chooses(oracle: Oracle, name: str) -> None:
    compare_predicate(oracle, name, batches=25)
