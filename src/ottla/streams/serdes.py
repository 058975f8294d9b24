"""Serdes: values to bytes and back. Null is never handed to them: a record without a value is a tombstone.

    serdes.string  serdes.integer  serdes.double  serdes.raw  serdes.json  serdes.of(Order)  serdes.avro(schema)
    serdes.row("id STRING, amount DOUBLE")

Numbers are written as Kafka's own serializers write them, big-endian, so programs in Java read them. Anything with two
methods, `serialize(topic, value)` and `deserialize(topic, data)`, is a serde: those of a schema
registry are in `ottla.streams.registry`.
"""

from __future__ import annotations

import dataclasses
import json as json_module
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, get_args, get_origin, get_type_hints

from ottla.common.errors import OttlaError

if TYPE_CHECKING:
    from ottla.streams.sql.row_serde import RowSerde


class Serde(Protocol):
    def serialize(self, topic: str, value: Any) -> bytes: ...

    def deserialize(self, topic: str, data: bytes) -> Any: ...


class FunctionSerde:
    """Of two functions that do not ask for the topic. The engine calls them directly."""

    def __init__(self, name: str, to_bytes: Callable[[Any], bytes], from_bytes: Callable[[bytes], Any]) -> None:
        self.name = name
        self.to_bytes = to_bytes
        self.from_bytes = from_bytes

    def serialize(self, topic: str, value: Any) -> bytes:
        return self.to_bytes(value)

    def deserialize(self, topic: str, data: bytes) -> Any:
        return self.from_bytes(data)

    def __repr__(self) -> str:
        return f"serdes.{self.name}"

    def __reduce__(self) -> Any:
        # Serdes of this module go to executors by name.
        return (_named, (self.name,)) if self.name in _BY_NAME else super().__reduce__()


def _raw_to_bytes(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    raise TypeError(f"serdes.raw writes bytes, and was given {type(value).__name__}")


def _text_to_bytes(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode()
    raise TypeError(f"serdes.string writes str, and was given {type(value).__name__}")


def _integer_to_bytes(value: Any) -> bytes:
    return _LONG.pack(value)


def _integer_from_bytes(data: bytes) -> int:
    # Kafka has four widths of integers, and a reader knows the width by the length.
    if len(data) not in (1, 2, 4, 8):
        raise ValueError(f"an integer has 1, 2, 4 or 8 bytes, not {len(data)}")
    return int.from_bytes(data, "big", signed=True)


def _double_to_bytes(value: Any) -> bytes:
    return _DOUBLE.pack(value)


def _double_from_bytes(data: bytes) -> float:
    if len(data) == 4:
        return float(_FLOAT.unpack(data)[0])
    if len(data) != 8:
        raise ValueError(f"a float has 4 or 8 bytes, not {len(data)}")
    return float(_DOUBLE.unpack(data)[0])


def _json_to_bytes(value: Any) -> bytes:
    return _JSON.encode(value).encode()


_LONG, _FLOAT, _DOUBLE = struct.Struct(">q"), struct.Struct(">f"), struct.Struct(">d")
_pack_integer = _LONG.pack
# Equal values are equal bytes: keys in JSON are found again.
_JSON = json_module.JSONEncoder(separators=(",", ":"), sort_keys=True, ensure_ascii=False, allow_nan=False)

raw = FunctionSerde("raw", _raw_to_bytes, bytes)
string = FunctionSerde("string", _text_to_bytes, bytes.decode)
integer = FunctionSerde("integer", _integer_to_bytes, _integer_from_bytes)
double = FunctionSerde("double", _double_to_bytes, _double_from_bytes)
json = FunctionSerde("json", _json_to_bytes, json_module.loads)

_BY_NAME = {serde.name: serde for serde in (raw, string, integer, double, json)}


def _named(name: str) -> FunctionSerde:
    return _BY_NAME[name]


class ModelSerde:
    """A dataclass, or a class in pydantic's style, as JSON."""

    def __init__(self, model: type[Any]) -> None:
        if not _is_pydantic(model) and not dataclasses.is_dataclass(model):
            raise OttlaError(f"{model.__name__} is neither a dataclass nor a model with `model_validate_json`.")
        self.model = model

    def serialize(self, topic: str, value: Any) -> bytes:
        if not isinstance(value, self.model):
            raise TypeError(f"a serde of {self.model.__name__} was given {type(value).__name__}")
        if _is_pydantic(self.model):
            return str(value.model_dump_json()).encode()
        return _json_to_bytes(dataclasses.asdict(value))

    def deserialize(self, topic: str, data: bytes) -> Any:
        if _is_pydantic(self.model):
            return self.model.model_validate_json(data)
        return _built(self.model, json_module.loads(data))

    def __repr__(self) -> str:
        return f"serdes.of({self.model.__name__})"


def of(model: type[Any]) -> ModelSerde:
    """`serdes.of(Order)`, for a dataclass or a pydantic model."""
    return ModelSerde(model)


def avro(schema: str | dict[str, Any]) -> Serde:
    """By one Avro schema, without a header. Needs fastavro."""
    from ottla.streams.avro_serde import AvroSerde

    return AvroSerde(schema)


def row(schema: str) -> RowSerde:
    """JSON objects with columns of known types, as dicts: `serdes.row("id STRING, amount DOUBLE")`. What SQL
    expressions work on."""
    from ottla.streams.sql.row_serde import row as row_serde

    return row_serde(schema)


def _is_pydantic(model: type[Any]) -> bool:
    return hasattr(model, "model_validate_json") and hasattr(model, "model_dump_json")


def _built(kind: Any, found: Any) -> Any:
    """Dataclasses within dataclasses, lists and dicts of them."""
    if dataclasses.is_dataclass(kind) and isinstance(kind, type) and isinstance(found, dict):
        hints = get_type_hints(kind)
        fields = {each.name: each for each in dataclasses.fields(kind)}
        if unknown := found.keys() - fields.keys():
            raise ValueError(f"{kind.__name__} has no field {sorted(unknown)[0]!r}")
        return kind(**{name: _built(hints[name], value) for name, value in found.items()})
    origin, arguments = get_origin(kind), get_args(kind)
    if isinstance(found, list) and origin in (list, tuple, set, frozenset) and arguments:
        return origin(_built(arguments[0], each) for each in found)
    if isinstance(found, dict) and origin is dict and len(arguments) == 2:
        return {name: _built(arguments[1], value) for name, value in found.items()}
    options = [each for each in arguments if dataclasses.is_dataclass(each)]
    if isinstance(found, dict) and len(options) == 1:  # Optional[Order]
        return _built(options[0], found)
    return found


class WindowedSerde:
    """Keys of windowed tables: the key's bytes, then the window's start as eight; Kafka's TimeWindowedSerializer."""

    def __init__(self, inner: Serde, size_ms: int | None = None, *, is_session: bool = False) -> None:
        self.inner = inner
        self.size_ms = size_ms
        self.is_session = is_session

    def serialize(self, topic: str, value: Any) -> bytes:
        key = self.inner.serialize(topic, value.key)
        if self.is_session:  # Kafka's SessionWindowedSerializer: end before start
            return key + _LONG.pack(value.window.end) + _LONG.pack(value.window.start)
        return key + _LONG.pack(value.window.start)

    def deserialize(self, topic: str, data: bytes) -> Any:
        from ottla.streams.windows import Window, Windowed

        if self.is_session:
            end, start = _LONG.unpack(data[-16:-8])[0], _LONG.unpack(data[-8:])[0]
            return Windowed(self.inner.deserialize(topic, data[:-16]), Window(start, end))
        start = _LONG.unpack(data[-8:])[0]
        end = start + self.size_ms if self.size_ms is not None else 2**63 - 1
        return Windowed(self.inner.deserialize(topic, data[:-8]), Window(start, end))


def writer(serde: Serde, topic: str) -> Callable[[Any], bytes | None]:
    """A function from values to bytes, null to null, with as few calls as possible."""
    if serde is string:
        return _text_or_none
    if serde is integer:
        return _integer_or_none
    if isinstance(serde, FunctionSerde):
        to_bytes = serde.to_bytes
    else:
        serialize = serde.serialize

        def to_bytes(value: Any) -> bytes:
            return serialize(topic, value)

    return lambda value: None if value is None else to_bytes(value)


def _text_or_none(value: Any) -> bytes | None:
    return value.encode() if type(value) is str else None if value is None else _text_to_bytes(value)


def _integer_or_none(value: Any) -> bytes | None:
    return None if value is None else _pack_integer(value)


def _text_of(data: bytes | None) -> str | None:
    return None if data is None else data.decode()


def _integer_of(data: bytes | None) -> int | None:
    if data is not None and len(data) == _LONG.size:
        found: int = _LONG.unpack(data)[0]
        return found
    return None if data is None else _integer_from_bytes(data)


def reader(serde: Serde, topic: str) -> Callable[[bytes | None], Any]:
    if serde is string:
        return _text_of
    if serde is integer:
        return _integer_of
    if isinstance(serde, FunctionSerde):
        from_bytes = serde.from_bytes
    else:
        deserialize = serde.deserialize

        def from_bytes(data: bytes) -> Any:
            return deserialize(topic, data)

    return lambda data: None if data is None else from_bytes(data)
