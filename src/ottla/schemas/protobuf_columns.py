"""Protobuf with the id of a schema before it, to columns that follow from the reader's message.

| Protobuf | Arrow, and so Spark |
|---|---|
| a message | a struct of its fields; null where it is not there |
| `repeated`, `map` | a list, a map |
| 32 bits with a sign; without, and 64 bits with one; 64 bits without | int; long; decimal(20, 0) |
| `float`, `double`, `bool`, `string`, `bytes` | the same |
| an enum | the name, or the number of one that the reader does not know, as text |
| `google.protobuf.Timestamp` | timestamp, in microseconds |
| the wrappers, as `google.protobuf.StringValue` | what they wrap |

Fields go by their numbers: what the reader does not know is passed over, what the writer does not have is null where
the field can tell that (`optional`, a oneof, a message), else its default. Of the writer's schema only one thing
matters: at which place of its file the message stood, which is what a value says of itself.

The kernel reads the messages (`ottla.kernel.protobuf`); protobuf's own runtime is needed for the descriptor only.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pyarrow as pa

from ottla.common.errors import OttlaError
from ottla.kernel.avro import schema_ids
from ottla.kernel.avro_steps import SENTENCES, Bad, ColumnShape, Fault, Kind
from ottla.kernel.protobuf import ProtobufDecoder
from ottla.kernel.protobuf_steps import FieldStep, Label, MessageStep, Type
from ottla.schemas.registered import PROTOBUF, Registered
from ottla.schemas.registry import SchemaRegistry
from ottla.schemas.writers import Writers

_INT32, _INT64, _DECIMAL = (
    (Kind.INT32, pa.int32()),
    (Kind.INT64, pa.int64()),
    (Kind.DECIMAL, pa.decimal128(20, 0)),
)
SINGLE: dict[int, tuple[Kind, Any]] = {
    Type.DOUBLE: (Kind.DOUBLE, pa.float64()),
    Type.FLOAT: (Kind.FLOAT, pa.float32()),
    Type.INT64: _INT64,
    Type.UINT64: _DECIMAL,
    Type.INT32: _INT32,
    Type.FIXED64: _DECIMAL,
    Type.FIXED32: _INT64,
    Type.BOOL: (Kind.BOOLEAN, pa.bool_()),
    Type.STRING: (Kind.BYTES, pa.string()),
    Type.BYTES: (Kind.BYTES, pa.binary()),
    Type.UINT32: _INT64,
    Type.ENUM: (Kind.BYTES, pa.string()),
    Type.SFIXED32: _INT32,
    Type.SFIXED64: _INT64,
    Type.SINT32: _INT32,
    Type.SINT64: _INT64,
    Type.TIMESTAMP: (Kind.INT64, pa.timestamp("us", tz="UTC")),
}
_TIMESTAMP = "google.protobuf.Timestamp"
_WRAPPERS = "google/protobuf/wrappers.proto"
Place = tuple[int, ...]


class Columns(NamedTuple):
    """What the kernel is given."""

    shapes: list[ColumnShape]
    type: Any
    messages: list[MessageStep]
    edges: list[int]
    constants: bytes


class ProtobufColumns:
    def __init__(self, registry: SchemaRegistry, reader: Registered) -> None:
        self._descriptor, place = chosen(reader, registry.message)
        self._name = self._descriptor.full_name
        columns = columns_of(self._descriptor)
        self.type = columns.type
        self._decoder = ProtobufDecoder(*columns)
        self._places: dict[int, Place] = {reader.id: place}
        self._reader_place = place
        self._writers = Writers(registry, self._places, self._learn)

    def decode(self, values: Any) -> tuple[Any, Any]:
        self._writers.meet(schema_ids(values))
        rows, bad = self._decoder.decode(values, self._places)
        if not bad:
            return rows, pa.nulls(len(rows), pa.string())
        reasons: list[str | None] = [None] * len(rows)
        for each in bad:
            reasons[each.row] = self._reason(each)
        return rows, pa.array(reasons, pa.string())

    def _reason(self, bad: Bad) -> str:
        if bad.fault == Fault.NOT_FRAMED:
            return SENTENCES[Fault.NOT_FRAMED]
        if bad.fault == Fault.NO_PROGRAM:
            return self._writers.why_not(bad.which)
        if bad.fault == Fault.OTHER_MESSAGE:
            return f"the value is another message of its file than '{self._name}'"
        return f"the value is no message '{self._name}': {SENTENCES[Fault(bad.fault)]}"

    def _learn(self, writer: Registered) -> str | None:
        if writer.type != PROTOBUF:
            return f"values of schema {writer.id} cannot be read by the reader's schema: it is of type {writer.type}"
        place = messages_of(writer).get(self._name, (None, self._reader_place))[1]
        self._places[writer.id] = place
        return None


# --- messages of a file


def messages_of(schema: Registered) -> dict[str, tuple[Any, Place]]:
    """By their full names: each, and where it is in its file."""
    try:
        from ottla.schemas.messages import message_classes

        classes = message_classes(schema.text, dict(schema.references))
    except ImportError:
        raise OttlaError("schemas of Protobuf need protobuf: run `pip install 'protobuf>=5'`.") from None
    found: dict[str, tuple[Any, Place]] = {}

    def walk(each: Any, place: Place) -> None:
        found[each.full_name] = (each, place)
        for index, nested in enumerate(each.nested_types):
            walk(nested, (*place, index))

    for index, each in enumerate(classes):
        walk(each.DESCRIPTOR, (index,))
    return found


def chosen(schema: Registered, name: str | None) -> tuple[Any, Place]:
    """The message of this name, or the first of the file."""
    found = messages_of(schema)
    if not found:
        raise OttlaError(f"the schema {schema.id} has no message.")
    for full, message in found.items():
        if name is None or name in (full, full.rpartition(".")[2]):
            return message
    raise OttlaError(f"the schema {schema.id} has no message '{name}': it has {', '.join(found)}.")


# --- a message as columns


def columns_of(descriptor: Any) -> Columns:
    """Raises OttlaError for a message that has none."""
    maker = _Maker()
    _, kind = maker.message(descriptor, (), maker.add(Kind.STRUCT))
    return Columns(maker.shapes, kind, maker.messages, maker.edges, bytes(maker.constants))


def kind_of(field: Any) -> Type:
    """As the kernel has it."""
    if field.message_type is not None:
        if field.message_type.full_name == _TIMESTAMP:
            return Type.TIMESTAMP
        if field.message_type.file.name == _WRAPPERS:
            return Type.WRAPPER
    return Type(field.type)


def is_repeated(field: Any) -> bool:
    # Newer versions of protobuf have a word for it, and warn of the label.
    return bool(field.is_repeated) if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED


def label_of(field: Any) -> Label:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        return Label.MAP
    if is_repeated(field):
        return Label.REPEATED
    return Label.PRESENT if field.has_presence else Label.IMPLICIT


def enum_edges(field: Any, edges: list[int], constants: bytearray) -> tuple[int, int]:
    """The names of an enum, added to what is there: from where on, and how many."""
    start = len(edges)
    values = sorted(field.enum_type.values_by_number.items())
    for number, value in values:
        name = value.name.encode()
        edges += (number, len(constants), len(name))
        constants += name
    return start, len(values)


class _Maker:
    def __init__(self) -> None:
        self.shapes: list[ColumnShape] = []
        self.messages: list[MessageStep] = []
        self.edges: list[int] = []
        self.constants = bytearray()

    def add(self, kind: Kind) -> int:
        self.shapes.append(ColumnShape(int(kind)))
        return len(self.shapes) - 1

    def message(self, descriptor: Any, above: tuple[str, ...], column: int) -> tuple[int, Any]:
        """Its number, and the type of its struct."""
        if descriptor.full_name in above:
            raise OttlaError(
                f"the message '{descriptor.full_name}' contains itself: Spark has no columns for that. Read the topic "
                "without a schema."
            )
        within = (*above, descriptor.full_name)
        number = self._reserve()
        oneofs = {oneof.full_name: index for index, oneof in enumerate(descriptor.oneofs)}
        steps: list[FieldStep] = []
        children: list[int] = []
        fields: list[Any] = []
        for field in descriptor.fields:
            step, kind, child = self._field(field, within)
            if field.containing_oneof is not None:
                step = step._replace(oneof=oneofs[field.containing_oneof.full_name])
            steps.append(step)
            children.append(child)
            fields.append(pa.field(field.name, kind))
        self.shapes[column] = ColumnShape(int(Kind.STRUCT), tuple(children))
        self.messages[number] = MessageStep(column, len(oneofs), tuple(steps))
        return number, pa.struct(fields)

    def _reserve(self) -> int:
        self.messages.append(MessageStep(-1, 0, ()))
        return len(self.messages) - 1

    def _field(self, field: Any, above: tuple[str, ...]) -> tuple[FieldStep, Any, int]:
        """How it is read, its type, and the column that is part of the struct."""
        label = label_of(field)
        if label == Label.MAP:
            outer = self.add(Kind.MAP)
            number = self._reserve()
            parts = [field.message_type.fields_by_name[name] for name in ("key", "value")]
            (key, key_kind), (value, value_kind) = (self._single(part, Label.IMPLICIT, above) for part in parts)
            self.shapes[outer] = ColumnShape(int(Kind.MAP), (key.column, value.column))
            self.messages[number] = MessageStep(-1, 0, (key, value))
            step = FieldStep(field.number, int(Type.MESSAGE), int(Label.MAP), -1, -1, outer, number)
            return step, pa.map_(key_kind, value_kind), outer
        if label == Label.REPEATED:
            outer = self.add(Kind.LIST)
            step, kind = self._single(field, label, above)
            self.shapes[outer] = ColumnShape(int(Kind.LIST), (step.column,))
            return step._replace(outer=outer), pa.list_(pa.field("element", kind)), outer
        step, kind = self._single(field, label, above)
        return step, kind, step.column

    def _single(self, field: Any, label: Label, above: tuple[str, ...]) -> tuple[FieldStep, Any]:
        kind = kind_of(field)
        step = FieldStep(field.number, int(kind), int(label), -1, -1, -1)
        if kind == Type.ENUM:
            start, count = enum_edges(field, self.edges, self.constants)
            step = step._replace(a=start, b=count, is_closed=int(field.enum_type.is_closed))
            step = step._replace(default=field.enum_type.values[0].number)
        if kind == Type.WRAPPER:
            number = self._reserve()
            inner, arrow = self._single(field.message_type.fields_by_name["value"], Label.IMPLICIT, above)
            self.messages[number] = MessageStep(-1, 0, (inner,))
            return step._replace(column=inner.column, a=number), arrow
        if kind in (Type.MESSAGE, Type.GROUP):
            column = self.add(Kind.STRUCT)
            number, arrow = self.message(field.message_type, above, column)
            return step._replace(column=column, a=number), arrow
        if kind == Type.TIMESTAMP:
            number = self._reserve()
            plain = (int(Label.IMPLICIT), -1, -1, -1)
            self.messages[number] = MessageStep(
                -1, 0, (FieldStep(1, int(Type.INT64), *plain), FieldStep(2, int(Type.INT32), *plain))
            )
            step = step._replace(a=number)
        shape, arrow = SINGLE[kind]
        return step._replace(column=self.add(shape)), arrow
