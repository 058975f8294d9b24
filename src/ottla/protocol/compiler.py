"""Straight-line Python that encodes or decodes one version of a message, made from its definition."""

from __future__ import annotations

import struct
from typing import Any

from ottla.protocol.definitions import FIXED, Message, default_of, definition, is_array, is_within, message_class
from ottla.protocol.primitives import (
    TAGS_MAX,
    MalformedMessage,
    check_array,
    read_bytes,
    read_long_bytes,
    read_string,
    read_uvarint,
    skip_tags,
    write_compact,
    write_string,
    write_uvarint,
)

# What one request may make us build, counted over all its arrays: each element costs the loop some twenty microseconds
# in all, and 100 MB of empty strings would become gigabytes of objects. Answers that we read may be larger.
REQUEST_ELEMENTS_MAX = 25_000
ELEMENTS_MAX = 10_000_000
# Elements between two stops of a generator; a power of two.
STEP_ELEMENTS = 32

_RUNTIME: dict[str, Any] = {
    "_uv": read_uvarint,
    "_wuv": write_uvarint,
    "_str": read_string,
    "_bytes": read_bytes,
    "_long": read_long_bytes,
    "_arr": check_array,
    "_skip": skip_tags,
    "_ws": write_string,
    "_wc": write_compact,
    "_MV": memoryview,
    "_Malformed": MalformedMessage,
}
for _kind, (_letter, _size) in FIXED.items():
    _RUNTIME[f"_r_{_kind}"] = struct.Struct(">" + _letter).unpack_from
    _RUNTIME[f"_w_{_kind}"] = struct.Struct(">" + _letter).pack


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


class Compiler:
    def __init__(self, name: str, version: int) -> None:
        self.message = definition(name)
        self.version = version
        self.flexible = is_within(version, self.message["flexible"])
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
        present = [field for field in fields if is_within(self.version, field["versions"])]
        tagged = [field for field in present if "tag" in field and is_within(self.version, field["tagged"])]
        return [field for field in present if field not in tagged], sorted(tagged, key=lambda field: field["tag"])

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
            value = self._decode_value(source, field, field["type"], is_within(self.version, field.get("nullable")))
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
            value = self._decode_value(source, field, field["type"], is_within(self.version, field.get("nullable")))
            source.add(f"{target}.{field['name']} = {value}")
            source.add(f"if p != {end}: raise _Malformed('tagged field has a wrong size')")
            source.depth -= 1
        source.add(f"p = {end}")
        source.depth -= 1

    def _decode_value(self, source: _Source, field: dict[str, Any], kind: str, nullable: bool) -> str:
        value = source.name()
        compact = self.flexible and not field.get("inflexible")
        if kind in FIXED:
            source.add(f"{value} = _r_{kind}(b, p)[0]; p += {FIXED[kind][1]}")
        elif kind == "uuid":
            source.add(f"{value} = _bytes(b, p, 16, size); p += 16")
        elif kind in ("string", "bytes", "records"):
            self._decode_sized(source, value, kind, compact, nullable)
        elif is_array(kind):
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
            source.add(f"{length} = _r_{width}(b, p)[0]; p += {FIXED[width][1]}")
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
            nullable = is_within(self.version, field.get("nullable"))
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
            nullable = is_within(self.version, field.get("nullable"))
            self._encode_value(source, value, field, field["type"], nullable, scope)
            source.add(f"{parts}.append(({field['tag']}, o))")
            source.depth -= 1
        source.add(f"o = {outer}")
        source.add(f"_wuv(o, len({parts}))")
        tag, body = source.name(), source.name()
        source.add(f"for {tag}, {body} in {parts}:")
        source.add(f"    _wuv(o, {tag}); _wuv(o, len({body})); o += {body}")

    def _differs(self, value: str, field: dict[str, Any], scope: dict[str, Any]) -> str:
        default = default_of(field)
        if is_array(field["type"]):
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
        if kind in FIXED:
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
        elif is_array(kind):
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
