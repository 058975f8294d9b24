"""SimpleHeaderConverter: headers as text, whose form says what they are."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ottla.connect.api.data import Column, Schema
from ottla.connect.conversion.converters.base import Converter, OnFailure, Piece
from ottla.connect.conversion.errors import DataError
from ottla.connect.conversion.values import NOTHING, parse_value, value_text


class SimpleHeaderConverter(Converter):
    class_name = "org.apache.kafka.connect.storage.SimpleHeaderConverter"

    def decode(self, topics: Any, data: Any, on_failure: OnFailure) -> list[Piece]:
        raise DataError("SimpleHeaderConverter is for headers only.")

    def encode(self, topics: Any, column: Column, on_failure: OnFailure) -> Any:
        raise DataError("SimpleHeaderConverter is for headers only.")

    def decode_header(self, topic: str, name: str, data: bytes | None) -> tuple[Schema | None, Any]:
        return NOTHING if data is None else _parsed(data)

    def encode_header(self, topic: str, name: str, schema: Schema | None, value: Any) -> bytes | None:
        return None if value is None else value_text(schema, value).encode(errors="replace")


@lru_cache(maxsize=4096)
def _parsed(data: bytes) -> tuple[Schema | None, Any]:
    return parse_value(data.decode(errors="replace"))
