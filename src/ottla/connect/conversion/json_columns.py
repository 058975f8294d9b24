"""JSON to columns and columns to JSON at once, where schema and data are plain enough; None sends them one by one."""

from __future__ import annotations

from typing import Any

from ottla.connect.api.data import Schema


def json_to_columns(schema: Schema, payloads: list[bytes], replaces_nulls: bool) -> Any | None:
    return None


def columns_to_json(
    schema: Schema, array: Any, replaces_nulls: bool, decimals_as_numbers: bool, begin: str, end: str
) -> Any | None:
    return None
