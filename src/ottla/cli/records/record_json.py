"""One record as one line of JSON: what `consume -J` prints and `produce -J` reads back.

    {"topic": "t", "partition": 0, "offset": 7, "timestamp": 1700000000000, "timestamp_type": "create",
     "key": "k", "value": "v", "headers": [{"key": "a", "value": "b"}]}

Bytes that are not UTF-8 come under `key_base64`, `value_base64` instead, so that nothing is lost on the way.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any

from ottla.cli.records.record_format import Draft

TIMESTAMP_TYPES = {0: "none", 1: "create", 2: "append"}


def to_json(message: Any) -> dict[str, Any]:
    kind, timestamp = message.timestamp()
    return {
        "topic": message.topic(),
        "partition": message.partition(),
        "offset": message.offset(),
        "timestamp": timestamp,
        "timestamp_type": TIMESTAMP_TYPES.get(kind, "none"),
        **bytes_field("key", message.key()),
        **bytes_field("value", message.value()),
        "headers": [{"key": name, **bytes_field("value", value)} for name, value in message.headers() or ()],
    }


def bytes_field(name: str, data: bytes | None) -> dict[str, str | None]:
    if data is None:
        return {name: None}
    try:
        return {name: data.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(data).decode()}


def from_json(line: bytes) -> Draft | None:
    """The record of a line, None where it is not one. Topic and offset are ignored; a partition is kept."""
    try:
        data = json.loads(line)
        if not isinstance(data, dict):
            return None
        return Draft(
            value=_bytes_of(data, "value"),
            key=_bytes_of(data, "key"),
            partition=_integer(data, "partition"),
            timestamp=_integer(data, "timestamp"),
            headers=[(str(header["key"]), _bytes_of(header, "value")) for header in data.get("headers") or ()] or None,
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _bytes_of(data: dict[str, Any], name: str) -> bytes | None:
    if (encoded := data.get(f"{name}_base64")) is not None:
        try:
            return base64.b64decode(encoded, validate=True)
        except binascii.Error as error:
            raise ValueError from error
    value = data.get(name)
    if value is None or isinstance(value, str):
        return None if value is None else value.encode()
    return json.dumps(value, ensure_ascii=False).encode()


def _integer(data: dict[str, Any], name: str) -> int | None:
    value = data.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(name)
    return value
