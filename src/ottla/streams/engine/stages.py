"""Native stages on an executor: records of one source through SQL expressions, on columns, before Python sees any.

What comes out is what the operators of the stage would have given record by record. So whatever cannot be read goes to
them, to be told of: each such record by itself, since nothing comes of it. Half a character, which Python can read and
Arrow cannot hold, may become something: from such a record on all of its partition goes record by record, in its order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ottla.common import lineage
from ottla.kernel.header_columns import with_header
from ottla.streams import serdes
from ottla.streams.engine.folding import arguments
from ottla.streams.engine.records import Row, headers_of, times_ms
from ottla.streams.engine.row_columns import NotHeld, RowColumns, struct_of
from ottla.streams.engine.vectors import TYPES, Columns, column_of
from ottla.streams.native import NativeStage
from ottla.streams.serdes import Serde
from ottla.streams.sql.aggregation import Aggregation
from ottla.streams.sql.row_serde import RowSerde
from ottla.streams.sql.schema import Kind
from ottla.streams.sql.statement import VALUE, primitive
from ottla.streams.sql.steps import Folded, NewKey, NewRow, Where, WithKey
from ottla.streams.topology import ProcessorNode, SinkNode, SourceNode, Topology

# Of a record as it came, its time in ms; and as it is now: its key, and its value as a struct or a plain column.
_OFFSET, _KEY, _VALUE, _TIME, _HEADERS, _NEW_KEY, _NEW_VALUE = range(7)
_NAMES = ["offset", "key", "value", "time", "headers", "new key", "new value"]


@dataclass
class Done:
    """Of records that came together. Where a stage ends, one of the others is there."""

    # Those that operators have to look at, from the source on.
    left: pa.RecordBatch
    # For the topic of the stage's sink: keys, values, times, headers.
    written: tuple[Any, Any, Any, Any] | None = None
    # To be put together by key.
    to_fold: pa.RecordBatch | None = None
    # Records for what is below the stage: as they came, and (key, value) as they are now.
    rows: list[Row] | None = None


class Stage:
    def __init__(self, topology: Topology, application_id: str, stage: NativeStage, *, has_lineage: bool) -> None:
        source = topology.nodes[stage.source]
        assert isinstance(source, SourceNode)
        self.topics = frozenset(topology.real_name(application_id, topic) for topic in source.topics)
        self.aggregation: Aggregation | None = None
        self.sink_topic: str | None = None
        self._writer = application_id if has_lineage else None
        self._source = source
        self._key_serde, self._value_serde = stage.key_serde, stage.value_serde
        steps = [_node(topology, name).native for name in stage.nodes]
        self._steps = [step.what for step in steps if step is not None]
        # The serde of the values after each step.
        self._serdes = [step.value_serde for step in steps if step is not None]
        self._has_new_key = any(isinstance(what, NewKey) for what in self._steps)
        if stage.sink is not None:
            sink = topology.nodes[stage.sink]
            assert isinstance(sink, SinkNode) and isinstance(sink.topic, str)
            self.sink_topic = topology.real_name(application_id, sink.topic)
        if stage.aggregate is not None:
            step = _node(topology, stage.aggregate).native
            assert step is not None and isinstance(step.what, Folded)
            self.aggregation = step.what.aggregation
        self._rows = RowColumns(source.value_serde) if isinstance(source.value_serde, RowSerde) else None
        self._results = RowColumns(self._value_serde) if isinstance(self._value_serde, RowSerde) else None
        # Partitions whose records go to operators.
        self._given_up: set[tuple[str, int]] = set()

    def done(self, topic: str, partition: int, batch: pa.RecordBatch) -> Done:
        """With records of one partition, in their order."""
        if (topic, partition) in self._given_up:
            return Done(batch)
        try:
            records, left = self._read(batch)
        except NotHeld:
            self._given_up.add((topic, partition))
            return Done(batch)
        serde = self._source.value_serde
        for what, after in zip(self._steps, self._serdes, strict=True):
            records = _after(records, what, serde)
            serde = after
        if self.aggregation is not None:
            return Done(left, to_fold=self._to_fold(records, self.aggregation, serde))
        if self.sink_topic is not None:
            return Done(left, written=self._written(records, topic, partition))
        return Done(left, rows=self._to_rows(records))

    def _read(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        """What can be read, and what cannot, as it came."""
        values = batch.column("value")
        key, wrong = _plain(self._source.key_serde, batch.column("key"))
        value, unreadable = self._rows.decode(values) if self._rows else _plain(self._source.value_serde, values)
        times = times_ms(batch)
        columns = [batch.column("offset"), batch.column("key"), values, times, batch.column("headers"), key, value]
        records = pa.RecordBatch.from_arrays(columns, names=_NAMES)
        is_wrong = pc.less(times, 0)  # a time before 1970 is refused
        if wrong or unreadable:
            places = pa.array({*wrong, *unreadable}, pa.int64())
            is_wrong = pc.or_(is_wrong, pc.is_in(pa.array(range(len(records)), pa.int64()), places))
        if not pc.any(is_wrong).as_py():
            return records, batch.slice(0, 0)
        return records.filter(pc.invert(is_wrong)), batch.filter(is_wrong)

    # --- where it ends

    def _written(self, records: pa.RecordBatch, topic: str, partition: int) -> tuple[Any, Any, Any, Any]:
        keys, headers = records.column(_KEY), records.column(_HEADERS)
        if self._has_new_key or self._key_serde is serdes.integer:  # four bytes are read, and eight are written
            keys = _bytes_of(self._key_serde, records.column(_NEW_KEY))
        values = records.column(_NEW_VALUE)
        values = self._results.encode(values) if self._results else _bytes_of(self._value_serde, values)
        if self._writer is not None:
            offsets = records.column(_OFFSET).cast(pa.string())
            places = pc.binary_join_element_wise(topic, str(partition), offsets, "/")
            made_of = pc.binary_join_element_wise(places, self._writer, " ").cast(pa.binary())
            headers = with_header(headers, lineage.HEADER, made_of)
        return keys, values, records.column(_TIME), headers

    def _to_fold(self, records: pa.RecordBatch, aggregation: Aggregation, serde: Serde) -> pa.RecordBatch:
        has_both = pc.and_(pc.is_valid(records.column(_NEW_KEY)), pc.is_valid(records.column(_NEW_VALUE)))
        given = arguments(aggregation, _columns(records, serde))
        columns = [records.column(_NEW_KEY), records.column(_OFFSET), records.column(_TIME), has_both]
        return pa.RecordBatch.from_arrays(
            [*columns, *given.values()], names=["key", "offset", "time", "counts", *given]
        )

    def _to_rows(self, records: pa.RecordBatch) -> list[Row]:
        lists = [records.column(place).to_pylist() for place in (_OFFSET, _KEY, _VALUE, _TIME)]
        now = zip(records.column(_NEW_KEY).to_pylist(), records.column(_NEW_VALUE).to_pylist(), strict=True)
        return list(zip(*lists, headers_of(records.column(_HEADERS)), now, strict=True))


def _node(topology: Topology, name: str) -> ProcessorNode:
    node = topology.nodes[name]
    assert isinstance(node, ProcessorNode)
    return node


def stages_by_topic(
    topology: Topology, application_id: str, stages: Mapping[str, NativeStage], *, has_lineage: bool
) -> dict[str, Stage]:
    made = [Stage(topology, application_id, stage, has_lineage=has_lineage) for stage in stages.values()]
    return {topic: stage for stage in made for topic in stage.topics}


# --- steps


def _columns(records: pa.RecordBatch, serde: Serde) -> Columns:
    value = records.column(_NEW_VALUE)
    row: Mapping[str, Any] = {VALUE: value}
    if isinstance(serde, RowSerde):
        row = {name: pc.struct_field(value, [place]) for place, (name, _) in enumerate(serde.schema)}
    return Columns(row, records.column(_NEW_KEY), records.column(_TIME))


def _after(records: pa.RecordBatch, what: object, serde: Serde) -> pa.RecordBatch:
    """`serde`: of the values before it."""
    if isinstance(what, WithKey):
        return records.filter(pc.is_valid(records.column(_NEW_KEY)))
    columns = _columns(records, serde)
    if isinstance(what, Where):
        holds = pc.fill_null(column_of(what.condition, columns), False)
        return records.filter(holds if what.wanted else pc.invert(holds))
    if isinstance(what, NewKey):
        return records.set_column(_NEW_KEY, _NAMES[_NEW_KEY], column_of(what.chosen, columns))
    assert isinstance(what, NewRow)
    kind = struct_of([(name, each.kind or Kind.STRING) for name, each in what.columns])
    made = [column_of(each, columns) for _, each in what.columns]
    is_gone = pc.is_null(records.column(_NEW_VALUE))
    row = pa.StructArray.from_arrays(made, fields=list(kind), mask=is_gone if pc.any(is_gone).as_py() else None)
    return records.set_column(_NEW_VALUE, _NAMES[_NEW_VALUE], row)


# --- plain values


def _plain(serde: Serde, values: Any) -> tuple[Any, list[int]]:
    """Bytes as what they say, and which of them cannot be read."""
    kind = primitive(serde)
    if kind is None:
        return values, []
    if kind is Kind.STRING:
        try:
            return values.cast(pa.string()), []
        except pa.ArrowInvalid:
            pass
    read, found, wrong = serdes.reader(serde, ""), [], []
    for place, data in enumerate(values.to_pylist()):
        try:
            found.append(read(data))
        except ValueError:
            found.append(None)
            wrong.append(place)
    return pa.array(found, TYPES[kind]), wrong


def _bytes_of(serde: Serde, values: Any) -> Any:
    if primitive(serde) in (None, Kind.STRING):
        return values.cast(pa.binary())
    write = serdes.writer(serde, "")
    return pa.array([write(value) for value in values.to_pylist()], pa.binary())
