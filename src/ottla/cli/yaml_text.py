"""YAML out of plain data, in block style. Output only, so a page of code does what a dependency would.

A string is written bare only when no YAML 1.1 or 1.2 reader can take it for something else; otherwise in double quotes
with YAML's own escapes (JSON's would do but for the characters that YAML does not allow as they are).
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

BARE = re.compile(r"[A-Za-z_/][A-Za-z0-9_./@-]*(?: [A-Za-z0-9_./@-]+)*")
AMBIGUOUS = frozenset(["true", "false", "yes", "no", "on", "off", "null", "none", "y", "n", "inf", "nan"])


def to_yaml(data: object) -> str:
    return "\n".join(_lines(data)) + "\n"


def _lines(data: object) -> list[str]:
    if isinstance(data, dict) and data:
        return [line for name, value in data.items() for line in _entry(f"{_scalar(name)}:", value)]
    if isinstance(data, Sequence) and not isinstance(data, str) and data:
        return [line for item in data for line in _item(item)]
    return [_scalar(data)]


def _entry(name: str, value: object) -> list[str]:
    below = _lines(value)
    if _is_block(value):
        return [name, *(f"  {line}" for line in below)]
    return [f"{name} {below[0]}"]


def _item(value: object) -> list[str]:
    first, *rest = _lines(value)
    return [f"- {first}", *(f"  {line}" for line in rest)]


def _is_block(value: object) -> bool:
    return isinstance(value, dict | list | tuple) and bool(value)


def _scalar(value: object) -> str:
    if not isinstance(value, str):
        return json.dumps(value)
    if BARE.fullmatch(value) and value.lower() not in AMBIGUOUS:
        return value
    return '"' + "".join(map(_character, value)) + '"'


def _character(char: str) -> str:
    if char in '"\\':
        return "\\" + char
    if char.isprintable():
        return char
    code = ord(char)
    if code <= 0xFF:
        return {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(char, f"\\x{code:02x}")
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
