"""Avro as a serde: values are dicts (or what the schema says), written without a header, by one schema for all.

Records with a schema id before them, as Confluent's clients write them, are for the serdes of a registry's client: they
have the same two methods and fit in as they are.
"""

from __future__ import annotations

import io
import json
from typing import Any

from ottla.common.errors import OttlaError


class AvroSerde:
    def __init__(self, schema: str | dict[str, Any]) -> None:
        self._schema = json.loads(schema) if isinstance(schema, str) else schema
        self._parsed: Any = None
        try:
            self._ready()
        except OttlaError:
            raise
        except Exception as error:
            raise OttlaError(f"this is not an Avro schema: {error}.") from None

    def _ready(self) -> tuple[Any, Any]:
        """Made once in every process; the schema itself goes to executors."""
        try:
            import fastavro
        except ModuleNotFoundError:
            raise OttlaError("Avro needs fastavro, which is not installed: run `pip install fastavro`.") from None
        if self._parsed is None:
            self._parsed = fastavro.parse_schema(self._schema)
        return fastavro, self._parsed

    def serialize(self, topic: str, value: Any) -> bytes:
        fastavro, parsed = self._ready()
        written = io.BytesIO()
        fastavro.schemaless_writer(written, parsed, value, strict=True)
        return written.getvalue()

    def deserialize(self, topic: str, data: bytes) -> Any:
        fastavro, parsed = self._ready()
        rest = io.BytesIO(data)
        value = fastavro.schemaless_reader(rest, parsed)
        if rest.read(1):
            raise ValueError("there is more than one value of this schema in it")
        return value

    def __getstate__(self) -> dict[str, Any]:
        return {"_schema": self._schema, "_parsed": None}

    def __repr__(self) -> str:
        named = self._schema.get("name", self._schema.get("type")) if isinstance(self._schema, dict) else self._schema
        return f"serdes.avro({named})"
