"""Bytes of a record as people read them: JSON, what a registry's schema says, text, or hex."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from ottla.client.schema_registry import RegistryClient
from ottla.common.errors import OttlaError
from ottla.common.where import Record
from ottla.console.records import exact_json
from ottla.console.records.masking import masked
from ottla.console.records.searching import View

PREVIEW_MAX = 240
TEXT_MAX = 256 * 1024
_HEAD_BYTES = 5


@dataclass(frozen=True)
class Shown:
    kind: str
    preview: str
    text: str
    size: int
    is_cut: bool = False


@dataclass(frozen=True)
class ShownRecord:
    topic: str
    partition: int
    offset: int
    timestamp: int
    key: Shown
    value: Shown
    headers: tuple[tuple[str, Shown], ...]


def shown(record: Record, wanted: str = "auto") -> ShownRecord:
    how = "auto" if wanted == "registry" else wanted
    return ShownRecord(
        record.topic,
        record.partition,
        record.offset,
        record.timestamp,
        read(record.key, how),
        read(record.value, how),
        tuple((name, read(value, "auto" if how == "json" else how)) for name, value in record.headers),
    )


def read(data: bytes | None, how: str = "auto") -> Shown:
    if data is None:
        return Shown("null", "null", "null", 0)
    if how == "hex":
        return _hex(data)
    if (how in ("auto", "json") and data[:1] in (b"{", b"[")) or how == "json":
        try:
            tree = exact_json.loads(data)
            # To write it may take more than to read it.
            line = exact_json.dumps(tree, ensure_ascii=False, separators=(", ", ": "))
            return _cut("json", line, exact_json.dumps(tree, indent=2, ensure_ascii=False), len(data))
        except (ValueError, RecursionError):
            pass
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return _cut("text", text := data.decode(errors="replace"), text, len(data)) if how == "text" else _hex(data)
    if how == "text" or all(character.isprintable() or character in "\n\r\t" for character in text[:4096]):
        return _cut("text", text, text, len(data))
    return _hex(data)


def _cut(kind: str, line: str, text: str, size: int) -> Shown:
    preview = " ".join(line[: PREVIEW_MAX * 2].split())
    preview = preview[:PREVIEW_MAX] + ("…" if len(preview) > PREVIEW_MAX or len(line) > PREVIEW_MAX * 2 else "")
    return Shown(kind, preview, text[:TEXT_MAX], size, len(text) > TEXT_MAX)


def _hex(data: bytes) -> Shown:
    """As hexdump: offsets, bytes, and what of them is ASCII."""
    lines = []
    for at in range(0, min(len(data), 16 * 1024), 16):
        row = data[at : at + 16]
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        lines.append(f"{at:06x}  {row[:8].hex(' '):<23}  {row[8:].hex(' '):<23}  {text}")
    preview = data[:40].hex(" ") + (" …" if len(data) > 40 else "")
    return Shown("hex", preview, "\n".join(lines), len(data), len(data) > 16 * 1024)


def as_line(record: Record) -> bytes:
    """Of a download, without its end; bytes that are no text are hex."""
    tree = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": _plain(record.key),
        "value": _plain(record.value),
        "headers": [[name, _plain(value)] for name, value in record.headers],
    }
    return exact_json.dumps(tree).encode()


def _plain(data: bytes | None) -> Any:
    if data is None:
        return None
    if data[:1] in (b"{", b"["):
        try:
            return exact_json.loads(data)
        except (ValueError, RecursionError):
            pass
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"hex": data.hex()}


def view_of(registry: RegistryClient | None, paths: tuple[tuple[str, ...], ...], *, with_registry: bool) -> View | None:
    """What is done with a record before it is filtered and shown; None if nothing is."""
    decode = _decoding(registry) if registry is not None and with_registry else None
    if decode is None and not paths:
        return None

    def view(record: Record) -> Record:
        if decode is not None:
            key, value = decode(record.key), decode(record.value)
            if key is not record.key or value is not record.value:
                record = replace(record, key=key, value=value, _json={})
        return masked(record, paths) if paths else record

    return view


def _decoding(registry: RegistryClient) -> Any:
    from ottla.schemas.rows import Values

    values = Values(registry)
    # An id that the registry does not know is asked for once, not for each record.
    unknown: set[bytes] = set()

    def decode(data: bytes | None) -> bytes | None:
        if data is None or len(data) <= _HEAD_BYTES or data[0] != 0 or data[:_HEAD_BYTES] in unknown:
            return data
        try:
            return json.dumps(values.decode(data), ensure_ascii=False).encode(errors="replace")
        except OttlaError:
            unknown.add(data[:_HEAD_BYTES])
            return data

    return decode
