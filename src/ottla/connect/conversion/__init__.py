"""Stand-in."""

from __future__ import annotations

import json
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from ottla.connect.api import Column, ConfigDef, ConnectorFailure, Header, Records, Schema, SchemaType

_STRING = Schema(SchemaType.STRING, optional=True)
_BYTES = Schema(SchemaType.BYTES, optional=True)
_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


class ConversionFailed(ConnectorFailure):
    pass


@dataclass(frozen=True)
class Failed:
    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Any
    stage: str
    class_name: str
    error: str
    exception_class: str
    trace: str


@dataclass(frozen=True)
class Converted:
    records: list[Records]
    failures: list[Failed] = field(default_factory=list)


@dataclass(frozen=True)
class Encoded:
    rows: pa.RecordBatch
    failures: list[Failed] = field(default_factory=list)


def config_def(config: Mapping[str, str]) -> ConfigDef:
    return ConfigDef()


def sink_side(config: Mapping[str, str]) -> SinkConversion:
    return SinkConversion(config)


def source_side(config: Mapping[str, str]) -> SourceConversion:
    return SourceConversion(config)


def _kind(config: Mapping[str, str], which: str) -> str:
    return config.get(f"{which}.converter", "Json").rpartition(".")[2].removesuffix("Converter")


class SinkConversion:
    def __init__(self, config: Mapping[str, str]) -> None:
        self._config = config

    def run(self, rows: pa.RecordBatch) -> Converted:
        good, failures = [], []
        keys, values = [], []
        kk, vk = _kind(self._config, "key"), _kind(self._config, "value")
        for i, row in enumerate(rows.to_pylist()):
            try:
                keys.append(self._decode(kk, "key", row["key"]))
                values.append(self._decode(vk, "value", row["value"]))
                good.append(i)
            except ValueError as error:
                del keys[len(good) :]
                failed = Failed(
                    row["topic"],
                    row["partition"],
                    row["offset"],
                    row["key"],
                    row["value"],
                    row["headers"],
                    "VALUE_CONVERTER",
                    vk,
                    str(error),
                    type(error).__name__,
                    traceback.format_exc(),
                )
                if self._config.get("errors.tolerance") != "all":
                    raise ConversionFailed(
                        f"record {row['topic']}-{row['partition']}@{row['offset']}: {error}"
                    ) from error
                failures.append(failed)
        taken = rows.take(pa.array(good, pa.int64()))
        if not good:
            return Converted([], failures)
        times = taken.column("timestamp").cast(pa.timestamp("ms", "UTC"), safe=False).cast(pa.int64())
        headers = [
            tuple(Header(h["key"], None, h["value"]) for h in each or ())
            for each in taken.column("headers").to_pylist()
        ]
        records = Records(
            taken.column("topic"),
            taken.column("partition"),
            times,
            self._column(kk, keys),
            self._column(vk, values),
            taken.column("offset"),
            headers if any(headers) else None,
        )
        return Converted([records], failures)

    def _decode(self, kind: str, which: str, data: bytes | None) -> Any:
        if data is None or kind == "ByteArray":
            return data
        if kind == "String":
            return data.decode()
        tree = json.loads(data)
        is_enveloped = self._config.get(f"{which}.converter.schemas.enable", "true") == "true"
        return tree["payload"] if is_enveloped else tree

    @staticmethod
    def _column(kind: str, found: list[Any]) -> Column:
        if kind == "String":
            return Column(_STRING, pa.array(found, pa.string()))
        if kind == "ByteArray":
            return Column(_BYTES, pa.array(found, pa.binary()))
        return Column(None, found)


class SourceConversion:
    def __init__(self, config: Mapping[str, str]) -> None:
        self._config = config

    def run(self, records: Records) -> Encoded:
        count = len(records)
        headers = [
            [{"key": h.key, "value": h.value if isinstance(h.value, bytes) else str(h.value).encode()} for h in each]
            for each in (records.headers or [()] * count)
        ]
        rows = pa.RecordBatch.from_pydict(
            {
                "topic": records.topics,
                "partition": records.partitions,
                "key": self._encode("key", records.keys),
                "value": self._encode("value", records.values),
                "headers": pa.array(headers, _HEADERS),
                "timestamp": records.timestamps,
            }
        )
        return Encoded(rows)

    def _encode(self, which: str, column: Column) -> pa.Array:
        kind = _kind(self._config, which)
        found = column.data if isinstance(column.data, list) else column.data.to_pylist()
        return pa.array([self._bytes(kind, which, one, column.schema) for one in found], pa.binary())

    def _bytes(self, kind: str, which: str, one: Any, schema: Schema | None) -> bytes | None:
        if one is None or isinstance(one, bytes):
            return one
        if kind == "String":
            return (one if isinstance(one, str) else str(one)).encode()
        if self._config.get(f"{which}.converter.schemas.enable", "true") == "true":
            one = {"schema": None if schema is None else {"type": str(schema.type), "optional": True}, "payload": one}
        return json.dumps(one, default=str).encode()
