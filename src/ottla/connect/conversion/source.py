"""On the way from a source: records through the transforms, then to bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa

from ottla.common.clock import Clock
from ottla.connect.api.data import Column, Records
from ottla.connect.conversion.converters.base import Converter
from ottla.connect.conversion.errors import java_name
from ottla.connect.conversion.failures import Failed, Stage
from ottla.connect.conversion.rows import Run
from ottla.connect.conversion.running import Failures, Retrying, Sleep, trace_of, transformed
from ottla.connect.conversion.settings import Parts, parts_of

HEADERS = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
ROWS = pa.schema(
    [
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("headers", HEADERS),
        pa.field("timestamp", pa.int64()),
    ]
)


@dataclass(frozen=True)
class Encoded:
    """Rows to publish, in the order of the records; and what failed, with errors.tolerance=all."""

    rows: Any
    failures: list[Failed]


class SourceConversion:
    def __init__(self, parts: Parts, *, clock: Clock | None = None, sleep: Sleep | None = None) -> None:
        self._parts = parts
        self._retrying = Retrying(parts, clock, sleep)

    def run(self, records: Records) -> Encoded:
        """Raises ConversionFailed at the first record that fails, if errors.tolerance is none, and Outage."""
        return self._retrying.run(lambda: self._run(records))

    def _run(self, records: Records) -> Encoded:
        failures = Failures(partial(_failed, records), tolerates=self._parts.tolerates)
        runs = [Run(records, pa.array(range(len(records)), pa.int64()))] if len(records) else []
        encoded = [self._encoded(run, failures) for run in transformed(runs, self._parts.steps, failures)]
        if not encoded:
            return Encoded(_none(), failures.told())
        table = pa.concat_tables([pa.Table.from_batches([batch]) for _, batch in encoded]).combine_chunks()
        batch = table.to_batches()[0] if table.num_rows else _none()
        indexes = [index for found, _ in encoded for index in found]
        if len(failures) or indexes != sorted(indexes):
            kept = sorted((index, at) for at, index in enumerate(indexes) if not failures.has(index))
            batch = batch.take(pa.array([at for _, at in kept], pa.int64()))
        return Encoded(batch, failures.told())

    def _encoded(self, run: Run, failures: Failures) -> tuple[list[int], Any]:
        records, indexes = run.records, run.indexes.to_pylist()
        headers = self._headers(records, indexes, failures)
        key = _encode(self._parts.key, Stage.KEY_CONVERTER, records, records.keys, indexes, failures)
        value = _encode(self._parts.value, Stage.VALUE_CONVERTER, records, records.values, indexes, failures)
        columns = [records.topics, records.partitions, key, value, headers, records.timestamps]
        return indexes, pa.RecordBatch.from_arrays(columns, schema=ROWS)

    def _headers(self, records: Records, indexes: list[int], failures: Failures) -> Any:
        if records.headers is None:
            return pa.nulls(len(records), HEADERS)
        converter = self._parts.header
        found: list[Any] = []
        for index, topic, listed in zip(indexes, records.topics.to_pylist(), records.headers, strict=True):
            made = []
            for each in listed:
                try:
                    data = converter.encode_header(topic, each.key, each.schema, each.value)
                except Exception as error:
                    failures.add(index, Stage.HEADER_CONVERTER, converter.class_name, error)
                    break
                made.append({"key": each.key, "value": data})
            found.append(made or None)
        return pa.array(found, HEADERS)


def _encode(
    converter: Converter, stage: Stage, records: Records, column: Column, indexes: list[int], failures: Failures
) -> Any:
    return converter.encode(
        records.topics, column, lambda at, error: failures.add(indexes[at], stage, converter.class_name, error)
    )


def _none() -> Any:
    return pa.RecordBatch.from_pylist([], schema=ROWS)


def _failed(records: Records, index: int, stage: Stage, class_name: str, error: Exception) -> Failed:
    return Failed(
        topic=records.topics[index].as_py(),
        partition=records.partitions[index].as_py(),
        offset=None,
        key=None,
        value=None,
        headers=(),
        stage=stage.value,
        class_name=class_name,
        error=str(error),
        exception_class=java_name(error),
        trace=trace_of(error),
    )


def source_side(
    config: Mapping[str, str], *, clock: Clock | None = None, sleep: Sleep | None = None
) -> SourceConversion:
    """Raises ConfigInvalid."""
    return SourceConversion(parts_of(config), clock=clock, sleep=sleep)
