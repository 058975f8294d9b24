"""Kafka messages as plain classes, with an encoder and a decoder compiled for each version in use.

`messages.json` states each message's fields, versions and defaults. The first time a (message, version) pair is
needed, straight-line Python for just that version is generated and compiled. Three things follow:

- one class serves every version: a field that a version lacks holds its default after decoding, and is left out
  when encoding, so handlers are written once;
- nothing is allocated on the word of a client: each length is compared with what remains of the buffer first
  (a generic native decoder we tried aborts the process on a forged array length);
- start-up pays for nothing that is not used.

A message with thousands of elements takes tens of milliseconds, so there is a second form of each encoder and decoder,
made of the same source: a generator that stops every few elements (`decode_in_steps`, `encode_in_steps`).

UUIDs are 16 raw bytes, times are integer milliseconds, `records` fields are zero-copy memoryviews.
"""

from __future__ import annotations

import json
import pkgutil
import struct
from collections.abc import Callable, Generator, Sequence
from functools import cache
from typing import Any

ZERO_UUID = bytes(16)
# What one request may make us build, counted over all its arrays: each element costs the loop some twenty microseconds
# in all, and 100 MB of empty strings would become gigabytes of objects. Answers that we read may be larger.
REQUEST_ELEMENTS_MAX = 25_000
ELEMENTS_MAX = 10_000_000
# Elements between two stops of a generator; a power of two.
STEP_ELEMENTS = 32
# What is copied between two of them.
_COPY_BYTES = 1 << 20
# Tags that may follow one struct; nothing defined has more than a handful.
TAGS_MAX = 32

Decoder = Callable[[Any, int], tuple[Any, int]]
Encoder = Callable[[Any, bytearray], None]
SteppedDecoder = Callable[[Any, int], Generator[None, None, tuple[Any, int]]]
SteppedEncoder = Callable[[Any, bytearray], Generator[None, None, None]]

_FIXED = {
    "int8": ("b", 1),
    "int16": ("h", 2),
    "uint16": ("H", 2),
    "int32": ("i", 4),
    "uint32": ("I", 4),
    "int64": ("q", 8),
    "float64": ("d", 8),
    "bool": ("?", 1),
}


class MalformedMessage(ValueError):
    """The bytes are not the message they claim to be."""


class Message:
    """Base of all message classes and of the structs inside them."""

    __slots__: tuple[str, ...] = ()

    def __repr__(self) -> str:
        inner = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__name__}({inner})"

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(_same(getattr(self, name), getattr(other, name)) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]


def _same(a: object, b: object) -> bool:
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(_same(x, y) for x, y in zip(a, b, strict=True))
    return a == b


# --- the definitions -------------------------------------------------------------------------------------------


@cache
def _lines() -> dict[str, str]:
    # Through the loader: on Spark's executors the package is a zip file.
    raw = pkgutil.get_data(__package__, "messages.json")
    assert raw is not None
    text = raw.decode()
    return {line[9 : line.index('"', 9)]: line for line in text.splitlines()}


@cache
def definition(name: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(_lines()[name])
    except KeyError:
        raise KeyError(f"no message is called {name}") from None
    return found


def message_names() -> Sequence[str]:
    return list(_lines())


def version_range(text: str | None) -> tuple[int, int]:
    """'3+' -> (3, 32767), '0-4' -> (0, 4), '5' -> (5, 5), 'none' -> an empty range."""
    if text is None or text == "none":
        return (1, 0)
    if text.endswith("+"):
        return (int(text[:-1]), 32767)
    low, _, high = text.partition("-")
    return (int(low), int(high or low))


def _within(version: int, text: str | None) -> bool:
    low, high = version_range(text)
    return low <= version <= high


def _is_array(kind: str) -> bool:
    return kind.startswith("[]")


def _default(field: dict[str, Any]) -> Any:
    kind = field["type"]
    given = field.get("default")
    if given == "null":
        return None
    if _is_array(kind):
        return ()
    if kind == "string":
        return given or ""
    if kind in ("bytes", "records"):
        return b""
    if kind == "uuid":
        return ZERO_UUID
    if kind == "bool":
        return given in (True, "true")
    if kind == "float64":
        return float(given or 0)
    if kind in _FIXED:
        return int(str(given or 0), 0)
    return None  # a struct; its default is made by the class


# --- the classes -----------------------------------------------------------------------------------------------


def _make_class(name: str, fields: list[dict[str, Any]], structs: dict[str, type[Message]]) -> type[Message]:
    arguments, body, scope = [], [], dict(structs)
    for field in fields:
        attribute = field["name"]
        scope[f"_d_{attribute}"] = _default(field)
        arguments.append(f"{attribute}=_d_{attribute}")
        kind = field["type"]
        if kind in structs and not _is_array(kind) and field.get("default") != "null":
            nullable = "nullable" in field
            body.append(
                f"    self.{attribute} = {attribute}"
                + ("" if nullable else f" if {attribute} is not None else {kind}()")
            )
        else:
            body.append(f"    self.{attribute} = {attribute}")
    source = f"def __init__(self{', *, ' + ', '.join(arguments) if arguments else ''}):\n"
    source += "\n".join(body or ["    pass"])
    exec(compile(source, f"<{name}>", "exec"), scope)
    return type(
        name,
        (Message,),
        {
            "__slots__": tuple(one["name"] for one in fields),
            "__init__": scope["__init__"],
            "__module__": __name__,
        },
    )


@cache
def message_class(name: str) -> type[Message]:
    """The class of a message; the structs inside it are its attributes."""
    structs: dict[str, type[Message]] = {}

    def visit(fields: list[dict[str, Any]]) -> None:
        for field in fields:
            if "fields" in field:
                visit(field["fields"])
                kind = field["type"].removeprefix("[]")
                if kind not in structs:
                    structs[kind] = _make_class(kind, field["fields"], structs)

    fields = definition(name)["fields"]
    visit(fields)
    made = _make_class(name, fields, structs)
    for kind, struct_class in structs.items():
        setattr(made, kind, struct_class)
    return made


# --- primitives that the generated code calls ---------------------------------------------------------------------


def read_uvarint(buffer: Any, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > 0xFFFFFFFF:
                raise MalformedMessage("varint does not fit 32 bits")
            return value, position
        shift += 7
        if shift > 28:
            raise MalformedMessage("varint is longer than five bytes")


def write_uvarint(out: bytearray, value: int) -> None:
    while value > 0x7F:
        out.append((value & 0x7F) | 0x80)
        value >>= 7
    out.append(value)


def _read_string(buffer: Any, start: int, length: int, size: int) -> str:
    # A compact string could be longer; Kafka refuses it, and it would fit into no version with a two-byte length.
    if length < 0 or start + length > size or length > 0x7FFF:
        raise MalformedMessage(f"string of {length} bytes is too long")
    return str(buffer[start : start + length], "utf-8")


def _read_bytes(buffer: Any, start: int, length: int, size: int) -> bytes:
    if length < 0 or start + length > size:
        raise MalformedMessage(f"{length} bytes run past the end")
    return bytes(buffer[start : start + length])


def _read_long_bytes(buffer: Any, start: int, length: int, size: int) -> Generator[None, None, bytes | bytearray]:
    """With stops: to copy a hundred megabytes takes tens of milliseconds."""
    if length <= _COPY_BYTES:
        return _read_bytes(buffer, start, length, size)
    if start + length > size:
        raise MalformedMessage(f"{length} bytes run past the end")
    copied = bytearray()
    for at in range(start, start + length, _COPY_BYTES):
        copied += buffer[at : min(at + _COPY_BYTES, start + length)]
        yield
    return copied


def _check_array(length: int, position: int, size: int, left: int) -> int:
    """How many more elements the message may have."""
    if length < 0 or length > size - position:
        raise MalformedMessage(f"array of {length} elements cannot be in {size - position} bytes")
    if length > left:
        raise MalformedMessage("the message has too many elements")
    return left - length


def _skip_tags(buffer: Any, position: int, size: int) -> int:
    count, position = read_uvarint(buffer, position)
    if count > TAGS_MAX:
        raise MalformedMessage(f"{count} tags")
    last = -1
    for _ in range(count):
        tag, position = read_uvarint(buffer, position)
        if tag <= last:
            raise MalformedMessage("tags are not in rising order")
        last = tag
        length, position = read_uvarint(buffer, position)
        position += length
        if position > size:
            raise MalformedMessage("tagged field runs past the end")
    return position


def _write_string(out: bytearray, text: str) -> None:
    raw = text.encode()
    if len(raw) > 0x7FFF:
        raise ValueError(f"a string of {len(raw)} bytes cannot be sent in this version")
    out += len(raw).to_bytes(2, "big")
    out += raw


def _write_compact(out: bytearray, raw: Any) -> None:
    write_uvarint(out, len(raw) + 1)
    out += raw


_RUNTIME: dict[str, Any] = {
    "_uv": read_uvarint,
    "_wuv": write_uvarint,
    "_str": _read_string,
    "_bytes": _read_bytes,
    "_long": _read_long_bytes,
    "_arr": _check_array,
    "_skip": _skip_tags,
    "_ws": _write_string,
    "_wc": _write_compact,
    "_MV": memoryview,
    "_Malformed": MalformedMessage,
}
for _kind, (_letter, _size) in _FIXED.items():
    _RUNTIME[f"_r_{_kind}"] = struct.Struct(">" + _letter).unpack_from
    _RUNTIME[f"_w_{_kind}"] = struct.Struct(">" + _letter).pack


# --- code generation ---------------------------------------------------------------------------------------------


class _Source:
    """Lines of Python with an indent. `in_steps`: of a generator that stops every few elements."""

    def __init__(self, in_steps: bool) -> None:
        self.lines: list[str] = []
        self.depth = 1
        self._names = 0
        self.in_steps = in_steps
        if in_steps:
            self.add("elements = 0")
            self.add("if elements: yield")

    def add(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    def name(self) -> str:
        self._names += 1
        return f"v{self._names}"

    def end_element(self) -> None:
        """Behind the code for one element of an array."""
        if self.in_steps:
            self.add("elements += 1")
            self.add(f"if not elements & {STEP_ELEMENTS - 1}: yield")


class _Compiler:
    def __init__(self, name: str, version: int) -> None:
        self.message = definition(name)
        self.version = version
        self.flexible = _within(version, self.message["flexible"])
        self.top = message_class(name)

    def _scope(self) -> dict[str, Any]:
        scope = dict(_RUNTIME)
        scope["_top"] = self.top
        for attribute, value in vars(self.top).items():
            if isinstance(value, type) and issubclass(value, Message):
                scope[f"_c_{attribute}"] = value
        return scope

    def _fields(self, fields: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """(plain, tagged) fields that this version carries."""
        present = [one for one in fields if _within(self.version, one["versions"])]
        tagged = [one for one in present if "tag" in one and _within(self.version, one["tagged"])]
        return [one for one in present if one not in tagged], sorted(tagged, key=lambda one: one["tag"])

    # decoding

    def decoder(self, in_steps: bool) -> Any:
        source = _Source(in_steps)
        source.add("size = len(b)")
        left = REQUEST_ELEMENTS_MAX if self.message["kind"] == "request" else ELEMENTS_MAX
        source.add(f"left = {left}")
        target = self._decode_struct(source, "_top", self.message["fields"])
        source.add(f"return {target}, p")
        scope = self._scope()
        text = "def decode(b, p):\n" + "\n".join(source.lines)
        exec(compile(text, f"<decode {self.message['name']} v{self.version}>", "exec"), scope)
        return scope["decode"]

    def _decode_struct(self, source: _Source, class_name: str, fields: list[dict[str, Any]]) -> str:
        target = source.name()
        source.add(f"{target} = {class_name}()")
        plain, tagged = self._fields(fields)
        for field in plain:
            value = self._decode_value(source, field, field["type"], _within(self.version, field.get("nullable")))
            source.add(f"{target}.{field['name']} = {value}")
        if self.flexible:
            self._decode_tags(source, target, tagged)
        return target

    def _decode_tags(self, source: _Source, target: str, tagged: list[dict[str, Any]]) -> None:
        if not tagged:
            source.add("if b[p] == 0: p += 1")
            source.add("else: p = _skip(b, p, size)")
            return
        count, last, tag, length, end = (source.name() for _ in range(5))
        source.add(f"{count}, p = _uv(b, p)")
        source.add(f"if {count} > {TAGS_MAX}: raise _Malformed('too many tags')")
        source.add(f"{last} = -1")
        source.add(f"for _ in range({count}):")
        source.depth += 1
        source.add(f"{tag}, p = _uv(b, p)")
        source.add(f"if {tag} <= {last}: raise _Malformed('tags are not in rising order')")
        source.add(f"{last} = {tag}")
        source.add(f"{length}, p = _uv(b, p)")
        source.add(f"{end} = p + {length}")
        source.add(f"if {end} > size: raise _Malformed('tagged field runs past the end')")
        for number, field in enumerate(tagged):
            source.add(f"{'if' if number == 0 else 'elif'} {tag} == {field['tag']}:")
            source.depth += 1
            value = self._decode_value(source, field, field["type"], _within(self.version, field.get("nullable")))
            source.add(f"{target}.{field['name']} = {value}")
            source.add(f"if p != {end}: raise _Malformed('tagged field has a wrong size')")
            source.depth -= 1
        source.add(f"p = {end}")
        source.depth -= 1

    def _decode_value(self, source: _Source, field: dict[str, Any], kind: str, nullable: bool) -> str:
        value = source.name()
        compact = self.flexible and not field.get("inflexible")
        if kind in _FIXED:
            source.add(f"{value} = _r_{kind}(b, p)[0]; p += {_FIXED[kind][1]}")
        elif kind == "uuid":
            source.add(f"{value} = _bytes(b, p, 16, size); p += 16")
        elif kind in ("string", "bytes", "records"):
            self._decode_sized(source, value, kind, compact, nullable)
        elif _is_array(kind):
            self._decode_array(source, value, field, kind, compact, nullable)
        else:
            if nullable:
                # A struct that may be null starts with -1 or 1; in a tag Kafka writes 0 or 1 instead.
                source.add("p += 1")
                source.add("if b[p - 1] >= 128 or b[p - 1] == 0:" if "tag" in field else "if b[p - 1] >= 128:")
                source.add(f"    {value} = None")
                source.add("else:")
                source.depth += 1
            inner = self._decode_struct(source, f"_c_{kind}", field["fields"])
            source.add(f"{value} = {inner}")
            if nullable:
                source.depth -= 1
        return value

    def _decode_length(self, source: _Source, compact: bool, width: str) -> str:
        length = source.name()
        if compact:
            source.add(f"{length} = b[p]; p += 1")
            source.add(f"if {length} > 127: {length}, p = _uv(b, p - 1)")
            source.add(f"{length} -= 1")
        else:
            source.add(f"{length} = _r_{width}(b, p)[0]; p += {_FIXED[width][1]}")
        return length

    def _decode_sized(self, source: _Source, value: str, kind: str, compact: bool, nullable: bool) -> None:
        length = self._decode_length(source, compact, "int16" if kind == "string" else "int32")
        if nullable:
            source.add(f"if {length} == -1: {value} = None")
            source.add("else:")
            source.depth += 1
        if kind == "records":
            source.add(f"if {length} < 0 or p + {length} > size: raise _Malformed('records run past the end')")
            source.add(f"{value} = _MV(b)[p:p + {length}]")
        else:
            read = "_str" if kind == "string" else "yield from _long" if source.in_steps else "_bytes"
            source.add(f"{value} = {read}(b, p, {length}, size)")
        source.add(f"p += {length}")
        if nullable:
            source.depth -= 1

    def _decode_array(
        self, source: _Source, value: str, field: dict[str, Any], kind: str, compact: bool, nullable: bool
    ) -> None:
        length = self._decode_length(source, compact, "int32")
        if nullable:
            source.add(f"if {length} == -1: {value} = None")
            source.add("else:")
            source.depth += 1
        source.add(f"left = _arr({length}, p, size, left)")
        source.add(f"{value} = []")
        source.add(f"for _ in range({length}):")
        source.depth += 1
        inner = self._decode_value(source, field, kind[2:], nullable=False)
        source.add(f"{value}.append({inner})")
        source.end_element()
        source.depth -= 1
        if nullable:
            source.depth -= 1

    # encoding

    def encoder(self, in_steps: bool) -> Any:
        source = _Source(in_steps)
        scope = self._scope()
        self._encode_struct(source, "m", self.message["fields"], scope)
        text = "def encode(m, o):\n" + "\n".join(source.lines or ["    pass"])
        exec(compile(text, f"<encode {self.message['name']} v{self.version}>", "exec"), scope)
        return scope["encode"]

    def _encode_struct(self, source: _Source, target: str, fields: list[dict[str, Any]], scope: dict[str, Any]) -> None:
        plain, tagged = self._fields(fields)
        for field in plain:
            value = source.name()
            source.add(f"{value} = {target}.{field['name']}")
            nullable = _within(self.version, field.get("nullable"))
            self._encode_value(source, value, field, field["type"], nullable, scope)
        if not self.flexible:
            return
        if not tagged:
            source.add("o.append(0)")
            return
        self._encode_tags(source, target, tagged, scope)

    def _encode_tags(self, source: _Source, target: str, tagged: list[dict[str, Any]], scope: dict[str, Any]) -> None:
        parts, outer = source.name(), source.name()
        source.add(f"{parts} = []; {outer} = o")
        for field in tagged:
            value = source.name()
            source.add(f"{value} = {target}.{field['name']}")
            source.add(f"if {self._differs(value, field, scope)}:")
            source.depth += 1
            source.add("o = bytearray()")
            nullable = _within(self.version, field.get("nullable"))
            self._encode_value(source, value, field, field["type"], nullable, scope)
            source.add(f"{parts}.append(({field['tag']}, o))")
            source.depth -= 1
        source.add(f"o = {outer}")
        source.add(f"_wuv(o, len({parts}))")
        tag, body = source.name(), source.name()
        source.add(f"for {tag}, {body} in {parts}:")
        source.add(f"    _wuv(o, {tag}); _wuv(o, len({body})); o += {body}")

    def _differs(self, value: str, field: dict[str, Any], scope: dict[str, Any]) -> str:
        default = _default(field)
        if _is_array(field["type"]):
            return f"{value} is not None" if default is None else f"{value} is None or len({value})"
        if "fields" in field:
            if field.get("default") == "null":
                return f"{value} is not None"
            scope[f"_z_{field['name']}"] = getattr(self.top, field["type"])()
            return f"{value} != _z_{field['name']}"
        scope[f"_z_{field['name']}"] = default
        return f"{value} != _z_{field['name']}"

    def _encode_value(
        self,
        source: _Source,
        value: str,
        field: dict[str, Any],
        kind: str,
        nullable: bool,
        scope: dict[str, Any],
    ) -> None:
        compact = self.flexible and not field.get("inflexible")
        if kind in _FIXED:
            source.add(f"o += _w_{kind}({value})")
        elif kind == "uuid":
            source.add(f"o += {value}")
        elif kind in ("string", "bytes", "records"):
            self._encode_null(source, value, compact, "string" if kind == "string" else "bytes", nullable)
            if kind == "string":
                source.add(f"_wc(o, {value}.encode())" if compact else f"_ws(o, {value})")
            else:
                source.add(f"_wc(o, {value})" if compact else f"o += _w_int32(len({value})); o += {value}")
            source.depth -= nullable
        elif _is_array(kind):
            self._encode_null(source, value, compact, "bytes", nullable)
            source.add(f"_wuv(o, len({value}) + 1)" if compact else f"o += _w_int32(len({value}))")
            item = source.name()
            source.add(f"for {item} in {value}:")
            source.depth += 1
            self._encode_value(source, item, field, kind[2:], False, scope)
            source.end_element()
            source.depth -= 1
            source.depth -= nullable
        else:
            if nullable:
                source.add(f"if {value} is None: o.append(255)")
                source.add("else:")
                source.depth += 1
                source.add("o.append(1)")
            self._encode_struct(source, value, field["fields"], scope)
            source.depth -= nullable

    def _encode_null(self, source: _Source, value: str, compact: bool, width: str, nullable: bool) -> None:
        """Open the branch for a value that may be null; the caller closes it."""
        if nullable:
            minus_one = b"\xff" * (2 if width == "string" else 4)
            null = "o.append(0)" if compact else f"o += {minus_one!r}"
            source.add(f"if {value} is None: {null}")
            source.add("else:")
            source.depth += 1


@cache
def decoder_for(name: str, version: int) -> Decoder:
    decoder: Decoder = _Compiler(name, version).decoder(in_steps=False)
    return decoder


@cache
def encoder_for(name: str, version: int) -> Encoder:
    encoder: Encoder = _Compiler(name, version).encoder(in_steps=False)
    return encoder


@cache
def _stepped_decoder_for(name: str, version: int) -> SteppedDecoder:
    decoder: SteppedDecoder = _Compiler(name, version).decoder(in_steps=True)
    return decoder


@cache
def _stepped_encoder_for(name: str, version: int) -> SteppedEncoder:
    encoder: SteppedEncoder = _Compiler(name, version).encoder(in_steps=True)
    return encoder


_READ_ERRORS = (struct.error, IndexError, UnicodeDecodeError)


def decode(name: str, version: int, buffer: Any, position: int = 0) -> Any:
    """Decode one message; raises MalformedMessage for anything that is not one."""
    return decode_from(name, version, buffer, position)[0]


def decode_from(name: str, version: int, buffer: Any, position: int = 0) -> tuple[Any, int]:
    """As `decode`, and where the message ended."""
    try:
        return decoder_for(name, version)(buffer, position)
    except MalformedMessage:
        raise
    except _READ_ERRORS as error:
        raise MalformedMessage(f"{name} v{version}: {error}") from None


def decode_in_steps(name: str, version: int, buffer: Any, position: int = 0) -> Generator[None, None, Any]:
    """As `decode`, with stops on the way."""
    try:
        message, _ = yield from _stepped_decoder_for(name, version)(buffer, position)
    except MalformedMessage:
        raise
    except _READ_ERRORS as error:
        raise MalformedMessage(f"{name} v{version}: {error}") from None
    return message


def encode(message: Message, version: int) -> bytearray:
    out = bytearray()
    encoder_for(type(message).__name__, version)(message, out)
    return out


def encode_in_steps(message: Message, version: int) -> Generator[None, None, bytearray]:
    """As `encode`, with stops on the way."""
    out = bytearray()
    yield from _stepped_encoder_for(type(message).__name__, version)(message, out)
    return out
