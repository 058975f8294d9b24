"""A default of a schema, which is JSON, as the bytes that a writer would have written for it."""

from __future__ import annotations

import struct
from typing import Any

from ottla.avro.parse import is_valid_default
from ottla.avro.schema import Schema


def zigzag(value: int) -> bytes:
    raw = (value << 1) ^ (value >> 63)
    found = bytearray()
    while raw > 0x7F:
        found.append(raw & 0x7F | 0x80)
        raw >>= 7
    found.append(raw)
    return bytes(found)


def default_bytes(schema: Schema, value: Any) -> bytes:
    """Of a default that was checked when the schema was parsed."""
    kind = schema.type
    if kind == "null":
        return b""
    if kind == "boolean":
        return b"\x01" if value else b"\x00"
    if kind in ("int", "long"):
        return zigzag(value)
    if kind in ("float", "double"):
        return struct.pack("<f" if kind == "float" else "<d", value)
    if kind == "string":
        return _sized(value.encode())
    if kind in ("bytes", "fixed"):
        # Avro's JSON has bytes as text of the same code points.
        raw = value.encode("latin-1")
        return _sized(raw) if kind == "bytes" else raw
    if kind == "enum":
        known = value if value in schema.symbols else schema.enum_default
        return zigzag(schema.symbols.index(str(known)))
    if kind == "array":
        return _block(b"".join(default_bytes(schema.element(), item) for item in value), len(value))
    if kind == "map":
        pairs = (_sized(name.encode()) + default_bytes(schema.element(), item) for name, item in value.items())
        return _block(b"".join(pairs), len(value))
    if kind == "union":
        number, branch = next(
            (number, branch) for number, branch in enumerate(schema.branches) if is_valid_default(branch, value)
        )
        return zigzag(number) + default_bytes(branch, value)
    return b"".join(default_bytes(its.schema, value.get(its.name, its.default)) for its in schema.fields)


def _sized(data: bytes) -> bytes:
    return zigzag(len(data)) + data


def _block(items: bytes, count: int) -> bytes:
    return (zigzag(count) + items if count else b"") + b"\x00"
