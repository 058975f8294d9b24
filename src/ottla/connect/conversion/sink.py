"""On the way to a sink: bytes of a topic to records of schemas, through the transforms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa

from ottla.common.clock import Clock
from ottla.connect.api.data import Column, Header, Records
from ottla.connect.conversion.arrow import take
from ottla.connect.conversion.converters.base import Converter, Piece
from ottla.connect.conversion.errors import java_name
from ottla.connect.conversion.failures import Failed, Stage
from ottla.connect.conversion.rows import Run, in_order, taken
from ottla.connect.conversion.running import Failures, Retrying, Sleep, trace_of, transformed
from ottla.connect.conversion.settings import Parts, parts_of


@dataclass(frozen=True)
class Converted:
    """Runs of one shape, in the order of the rows; and what failed, with errors.tolerance=all."""

    records: list[Records]
    failures: list[Failed]


class SinkConversion:
    def __init__(self, parts: Parts, *, clock: Clock | None = None, sleep: Sleep | None = None) -> None:
        self._parts = parts
        self._retrying = Retrying(parts, clock, sleep)

    def run(self, rows: Any) -> Converted:
        """`rows`: a record batch with key, value (binary), topic, partition, offset, timestamp and headers. Raises
        ConversionFailed at the first record that fails, if errors.tolerance is none, and Outage."""
        if not rows.num_rows:
            return Converted([], [])
        return self._retrying.run(lambda: self._run(rows))

    def _run(self, rows: Any) -> Converted:
        failures = Failures(partial(_failed, rows), tolerates=self._parts.tolerates)
        topics = rows.column("topic").cast(pa.string())
        keys = self._pieces(self._parts.key, Stage.KEY_CONVERTER, topics, rows.column("key"), failures)
        values = self._pieces(self._parts.value, Stage.VALUE_CONVERTER, topics, rows.column("value"), failures)
        headers = self._headers(rows, topics, failures)
        runs = _runs(rows, topics, keys, values, headers, failures)
        runs = transformed(runs, self._parts.steps, failures)
        failed = failures.told()
        return Converted(in_order(runs, merges_nulls=True), failed)

    def _pieces(self, converter: Converter, stage: Stage, topics: Any, data: Any, failures: Failures) -> list[Piece]:
        return converter.decode(
            topics, _binary(data), lambda at, error: failures.add(at, stage, converter.class_name, error)
        )

    def _headers(self, rows: Any, topics: Any, failures: Failures) -> list[tuple[Header, ...]] | None:
        if "headers" not in rows.schema.names or (column := rows.column("headers")).null_count == len(rows):
            return None
        converter = self._parts.header
        found: list[tuple[Header, ...]] = []
        for index, (topic, listed) in enumerate(zip(topics.to_pylist(), column.to_pylist(), strict=True)):
            made = []
            for each in listed or ():
                name = each["key"]
                try:
                    made.append(Header(name, *converter.decode_header(topic, name, each["value"])))
                except Exception as error:
                    failures.add(index, Stage.HEADER_CONVERTER, converter.class_name, error)
                    break
            found.append(tuple(made))
        return found if any(found) else None


def _binary(data: Any) -> Any:
    return data if data.type == pa.binary() else data.cast(pa.binary())


def _runs(
    rows: Any,
    topics: Any,
    keys: list[Piece],
    values: list[Piece],
    headers: list[tuple[Header, ...]] | None,
    failures: Failures,
) -> list[Run]:
    timestamps = rows.column("timestamp")
    if pa.types.is_timestamp(timestamps.type):
        timestamps = timestamps.cast(pa.timestamp("ms", tz=timestamps.type.tz), safe=False)
    # Without a schema, and in place of keys and values that are of several.
    blank = Column(None, [None] * len(rows))
    whole = Records(
        topics=topics,
        partitions=rows.column("partition").cast(pa.int32()),
        timestamps=timestamps.cast(pa.int64()),
        keys=blank,
        values=blank,
        offsets=rows.column("offset").cast(pa.int64()),
        headers=headers,
    )
    indexes = pa.array(range(len(rows)), pa.int64())
    found = []
    for key, value, chosen in _paired(keys, values, len(rows), failures):
        records = whole if chosen is None else taken(whole, chosen)
        made = Records(
            topics=records.topics,
            partitions=records.partitions,
            timestamps=records.timestamps,
            keys=key,
            values=value,
            offsets=records.offsets,
            headers=records.headers,
        )
        found.append(Run(made, indexes if chosen is None else chosen))
    return found


def _paired(
    keys: list[Piece], values: list[Piece], count: int, failures: Failures
) -> list[tuple[Column, Column, Any | None]]:
    """Keys and values of the same rows; None: of all."""
    if len(keys) == 1 and len(values) == 1 and keys[0].at is None and values[0].at is None and not len(failures):
        return [(keys[0].column, values[0].column, None)]
    places: dict[tuple[int, int], tuple[list[int], list[int], list[int]]] = {}
    of_keys, of_values = _where(keys, count), _where(values, count)
    for index in range(count):
        key, value = of_keys[index], of_values[index]
        if key is None or value is None or failures.has(index):
            continue
        at = places.setdefault((key[0], value[0]), ([], [], []))
        for listed, place in zip(at, (key[1], value[1], index), strict=True):
            listed.append(place)
    return [
        (
            take(keys[key].column, pa.array(in_key, pa.int64())),
            take(values[value].column, pa.array(in_value, pa.int64())),
            pa.array(chosen, pa.int64()),
        )
        for (key, value), (in_key, in_value, chosen) in places.items()
    ]


def _where(pieces: list[Piece], count: int) -> list[tuple[int, int] | None]:
    found: list[tuple[int, int] | None] = [None] * count
    for which, piece in enumerate(pieces):
        at = range(count) if piece.at is None else piece.at.to_pylist()
        for place, index in enumerate(at):
            found[index] = (which, place)
    return found


def _failed(rows: Any, index: int, stage: Stage, class_name: str, error: Exception) -> Failed:
    row = {name: rows.column(name)[index].as_py() for name in ("topic", "partition", "offset", "key", "value")}
    headers = rows.column("headers")[index].as_py() if "headers" in rows.schema.names else None
    return Failed(
        **row,
        headers=[(each["key"], each["value"]) for each in headers or ()],
        stage=stage.value,
        class_name=class_name,
        error=str(error),
        exception_class=java_name(error),
        trace=trace_of(error),
    )


def sink_side(config: Mapping[str, str], *, clock: Clock | None = None, sleep: Sleep | None = None) -> SinkConversion:
    """Raises ConfigInvalid."""
    return SinkConversion(parts_of(config), clock=clock, sleep=sleep)
