"""Native stages as columns of the source's frame, before records come to Python.

Each stage concerns the rows of its own topics; all others pass as they are. So does, of its own topics, whatever Spark
cannot read for certain: Python reads it from the source on, and says what is wrong with it if anything is. The column
`native` says how far a row has come.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.streams import serdes
from ottla.streams.native import NativeStage
from ottla.streams.serdes import Serde
from ottla.streams.sql.expressions import KEY, ROW, TIME
from ottla.streams.sql.row_serde import RowSerde
from ottla.streams.sql.schema import Kind
from ottla.streams.sql.statement import VALUE
from ottla.streams.sql.steps import Folded, NewKey, NewRow, Where
from ottla.streams.topology import ProcessorNode, SinkNode, SourceNode, Topology

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# How far a row has come: the operators of its stage are done; it is ready for its topic; it is to be folded.
ENTERS, LEAVES, FOLDS = 1, 2, 3
NATIVE, TARGET = "native", "target"
_PLAIN = ("topic", "partition", "offset", "key", "value", "timestamp", "headers")


def with_native_stages(
    frame: DataFrame, topology: Topology, application_id: str, stages: dict[str, NativeStage]
) -> DataFrame:
    frame = frame.select(*_PLAIN)
    done = [_Stage(topology, application_id, number, stage) for number, stage in enumerate(stages.values())]
    for stage in done:
        frame = stage.applied(frame)
    values = [
        *(f"{name}" for name in ("topic", "partition", "offset", "timestamp", "headers")),
        f"{_first([(stage.is_ours, stage.key_bytes()) for stage in done], 'key')} AS key",
        f"{_first([(stage.is_ours, stage.value_bytes()) for stage in done], 'value')} AS value",
        f"{_first([(stage.is_ours, str(stage.how_far)) for stage in done], 'NULL')} AS {NATIVE}",
        f"{_first([(stage.is_ours, stage.target) for stage in done], 'CAST(NULL AS STRING)')} AS {TARGET}",
    ]
    values += [column for stage in done for column in stage.arguments()]
    return frame.selectExpr(*values)


def _first(cases: list[tuple[str, str]], otherwise: str) -> str:
    return f"CASE {' '.join(f'WHEN {holds} THEN {text}' for holds, text in cases)} ELSE {otherwise} END"


def argument_name(node: str, part: int, what: str = "") -> str:
    """Of the column with what a part of an aggregate is made of."""
    return f"{node}/{part}{what}"


class _Stage:
    def __init__(self, topology: Topology, application_id: str, number: int, stage: NativeStage) -> None:
        source = topology.nodes[stage.source]
        assert isinstance(source, SourceNode)
        self._topology, self._stage, self._source = topology, stage, source
        real = [topology.real_name(application_id, topic) for topic in source.topics]
        names = ", ".join(f"'{topic}'" for topic in real)
        self._is_of_topic = f"topic IN ({names})"
        self.is_ours = f"_ours{number}"
        self._row, self._key = f"_row{number}", f"_key{number}"
        self._has_new_key = False
        self._aggregate: ProcessorNode | None = None
        self.how_far, self.target = ENTERS, "NULL"
        if stage.sink is not None:
            sink = topology.nodes[stage.sink]
            assert isinstance(sink, SinkNode) and isinstance(sink.topic, str)
            self.how_far, self.target = LEAVES, f"'{topology.real_name(application_id, sink.topic)}'"
        if stage.aggregate is not None:
            node = topology.nodes[stage.aggregate]
            assert isinstance(node, ProcessorNode)
            self.how_far, self._aggregate = FOLDS, node

    def applied(self, frame: DataFrame) -> DataFrame:
        row, is_readable = _row_of(self._source.value_serde)
        key, is_key_readable = _key_of(self._source.key_serde)
        frame = frame.selectExpr(
            "*",
            f"CASE WHEN {self._is_of_topic} THEN {row} END AS {self._row}",
            f"CASE WHEN {self._is_of_topic} THEN {key} END AS {self._key}",
        )
        # A time before 1970 is for Python to refuse.
        conditions = [self._is_of_topic, is_readable.replace(ROW, self._row), is_key_readable]
        conditions.append("unix_millis(timestamp) >= 0")
        frame = frame.selectExpr("*", f"coalesce({' AND '.join(conditions)}, FALSE) AS {self.is_ours}")
        for number, name in enumerate(self._stage.nodes):
            frame = self._after(frame, name, number)
        return frame

    def _after(self, frame: DataFrame, name: str, number: int) -> DataFrame:
        node = self._topology.nodes[name]
        assert isinstance(node, ProcessorNode) and node.native is not None
        what = node.native.what
        if isinstance(what, Where):
            return frame.where(f"NOT {self.is_ours} OR coalesce({self._named(what.spark)}, FALSE)")
        if isinstance(what, NewKey):
            new = f"{self._key}_{number}"
            frame = frame.selectExpr("*", f"CASE WHEN {self.is_ours} THEN {self._named(what.spark)} END AS {new}")
            self._key, self._has_new_key = new, True
            return frame
        assert isinstance(what, NewRow)
        fields = ", ".join(f"{_text(column)}, {self._named(text)}" for column, text in what.columns)
        new = f"{self._row}_{number}"
        made = f"CASE WHEN {self.is_ours} AND value IS NOT NULL THEN named_struct({fields}) END"
        self._row = new
        return frame.selectExpr("*", f"{made} AS {new}")

    def _named(self, text: str) -> str:
        return text.replace(ROW, self._row).replace(KEY, self._key).replace(TIME, "unix_millis(timestamp)")

    def key_bytes(self) -> str:
        if not self._has_new_key:
            return "key"
        if self._stage.key_serde is serdes.integer:
            return f"unhex(lpad(hex({self._key}), 16, '0'))"
        return f"CAST({self._key} AS BINARY)"

    def value_bytes(self) -> str:
        """Of a row always anew, also where it was only read: as a serde would write it."""
        serde = self._stage.value_serde
        if self._aggregate is not None or not isinstance(serde, RowSerde):
            return "value"
        fields = ", ".join(f"{_text(name)}, {self._row}.`{name}`" for name, _ in serde.schema)
        json = f"to_json(named_struct({fields}), map('ignoreNullFields', 'false'))"
        return f"CASE WHEN value IS NULL THEN NULL ELSE CAST({json} AS BINARY) END"

    def arguments(self) -> list[str]:
        if self._aggregate is None:
            return []
        assert self._aggregate.native is not None
        folded = self._aggregate.native.what
        assert isinstance(folded, Folded)
        columns = {}
        for number, part in enumerate(folded.aggregation.parts):
            if part.argument is None:
                continue
            text = self._named(part.argument.spark)
            if part.function == "count":
                columns[argument_name(self._aggregate.name, number)] = f"CAST({text} IS NOT NULL AS BIGINT)"
            elif part.function == "sum" and part.kind is Kind.BIGINT:
                # In two halves, whose sums cannot overflow.
                columns[argument_name(self._aggregate.name, number, "high")] = f"shiftright({text}, 32)"
                columns[argument_name(self._aggregate.name, number, "low")] = f"({text} & 4294967295L)"
            elif part.function == "sum" or part.kind is Kind.BIGINT:
                columns[argument_name(self._aggregate.name, number)] = text
            else:
                # NaN is the largest number in Spark, and passed over by Arrow.
                columns[argument_name(self._aggregate.name, number)] = f"CASE WHEN NOT isnan({text}) THEN {text} END"
                columns[argument_name(self._aggregate.name, number, "nan")] = f"CAST(isnan({text}) AS BIGINT)"
        return [f"CASE WHEN {self.is_ours} THEN {text} END AS `{name}`" for name, text in columns.items()]


def _row_of(serde: Serde) -> tuple[str, str]:
    """The text of the row, and when it is sure to be what Python would read."""
    is_text = "(value IS NULL OR is_valid_utf8(CAST(value AS STRING)))"
    if serde is serdes.string:
        return f"named_struct('{VALUE}', CAST(value AS STRING))", is_text
    if serde is serdes.integer:
        number = "CAST(conv(hex(value), 16, -10) AS BIGINT)"
        return f"named_struct('{VALUE}', {number})", "(value IS NULL OR length(value) = 8)"
    assert isinstance(serde, RowSerde)
    broken = "_broken"
    while broken in {name.lower() for name, _ in serde.schema}:
        broken += "_"
    schema = _text(f"{serde.schema.ddl()}, `{broken}` STRING")
    options = f"map('mode', 'PERMISSIVE', 'columnNameOfCorruptRecord', '{broken}')"
    is_read = f"(value IS NULL OR ({ROW} IS NOT NULL AND {ROW}.`{broken}` IS NULL))"
    return f"from_json(CAST(value AS STRING), {schema}, {options})", f"{is_text} AND {is_read}"


def _key_of(serde: Serde) -> tuple[str, str]:
    if serde is serdes.string:
        return "CAST(key AS STRING)", "(key IS NULL OR is_valid_utf8(CAST(key AS STRING)))"
    if serde is serdes.integer:
        return "CAST(conv(hex(key), 16, -10) AS BIGINT)", "(key IS NULL OR length(key) = 8)"
    return "key", "TRUE"


def _text(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
