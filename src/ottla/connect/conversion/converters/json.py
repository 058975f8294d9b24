"""JsonConverter: JSON with the schema in each record, or without one.

With schemas most of a record is its schema, and it is the same in all of them. So the bytes before the payload are kept
with the schema that they say, and records that begin with the same bytes have only their payload parsed: all at once,
into columns, where the schema and the data allow it (`json_columns.py`), else one by one.
"""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from ottla.connect.api.config import ConfigDef, ConfigKey, ConfigType, Importance
from ottla.connect.api.data import Column, Schema
from ottla.connect.conversion.arrow import has_decimals, readable
from ottla.connect.conversion.converters.base import Converter, OnFailure, Piece, pieces_of
from ottla.connect.conversion.errors import DataError, RecordError
from ottla.connect.conversion.json_columns import columns_to_json, json_to_columns
from ottla.connect.conversion.json_schema import schema_from_json, schema_to_json
from ottla.connect.conversion.json_text import encoder_of
from ottla.connect.conversion.json_values import FAST, NeedsExact, decoder_of, parse

_BEGIN = re.compile(r'[ \t\n\r]*\{[ \t\n\r]*"schema"[ \t\n\r]*:[ \t\n\r]*')
_PAYLOAD = re.compile(r'[ \t\n\r]*,[ \t\n\r]*"payload"[ \t\n\r]*:[ \t\n\r]*')


def _decimal_format(text: str) -> str | None:
    return None if text.upper() in ("BASE64", "NUMERIC") else "it is BASE64 or NUMERIC."


SETTINGS = ConfigDef(
    (
        ConfigKey(
            "schemas.enable",
            ConfigType.BOOLEAN,
            'Whether each key or value carries its schema: `{"schema": ..., "payload": ...}`.',
            True,
            Importance.HIGH,
        ),
        ConfigKey(
            "schemas.cache.size",
            ConfigType.INT,
            "How many schemas are remembered, so that they need not be read again.",
            1000,
            Importance.HIGH,
        ),
        ConfigKey(
            "schema.content",
            ConfigType.STRING,
            "A schema for everything that is read, which then is the payload alone. Needs schemas.enable.",
            None,
            Importance.HIGH,
        ),
        ConfigKey(
            "decimal.format",
            ConfigType.STRING,
            "How decimals are written: BASE64 (their bytes) or NUMERIC (a JSON number). Both are read.",
            "BASE64",
            Importance.LOW,
            _decimal_format,
            ("BASE64", "NUMERIC"),
        ),
        ConfigKey(
            "replace.null.with.default",
            ConfigType.BOOLEAN,
            "Whether a null in a field that has a default becomes the default.",
            True,
            Importance.LOW,
        ),
    )
)


class JsonConverter(Converter):
    class_name = "org.apache.kafka.connect.json.JsonConverter"
    config_def = SETTINGS

    def __init__(self, settings: Mapping[str, Any], *, is_key: bool) -> None:
        super().__init__(settings, is_key=is_key)
        self._has_schemas: bool = settings["schemas.enable"]
        self._cache_size: int = max(1, settings["schemas.cache.size"])
        self._replaces_nulls: bool = settings["replace.null.with.default"]
        self._as_numbers = settings["decimal.format"].upper() == "NUMERIC"
        # By the bytes before the payload, and by the JSON of the schema alone.
        self._heads: OrderedDict[bytes, Schema | None] = OrderedDict()
        self._schemas: OrderedDict[str, Schema | None] = OrderedDict()
        self._written: OrderedDict[Schema, str] = OrderedDict()
        self._content: Schema | None = None
        if settings["schema.content"]:
            self._content = self._schema(parse(settings["schema.content"].encode(), exact=True))

    # --- bytes to columns

    def decode(self, topics: Any, data: Any, on_failure: OnFailure) -> list[Piece]:
        if not self._has_schemas:
            return self._decode_payloads(None, data.to_pylist(), on_failure)
        if self._content is not None:
            return self._decode_payloads(self._content, data.to_pylist(), on_failure)
        return self._decode_envelopes(data, on_failure)

    def _decode_payloads(self, schema: Schema | None, values: list[Any], on_failure: OnFailure) -> list[Piece]:
        """Null bytes have no schema, whatever is set."""
        places = [at for at, value in enumerate(values) if value is not None]
        payloads = [value for value in values if value is not None]
        pieces = []
        if payloads:
            pieces = self._columns(schema, payloads, places, len(values), on_failure)
        if len(payloads) < len(values):
            absent = [at for at, value in enumerate(values) if value is None]
            pieces += pieces_of({None: (absent, [None] * len(absent))}, len(values), on_failure)
        return pieces

    def _columns(
        self, schema: Schema | None, payloads: list[bytes], places: list[int], count: int, on_failure: OnFailure
    ) -> list[Piece]:
        if schema is not None and (array := json_to_columns(schema, payloads, self._replaces_nulls)) is not None:
            return [Piece(Column(schema, array), None if len(places) == count else pa.array(places, pa.int64()))]
        decode, exact = decoder_of(schema, self._replaces_nulls), has_decimals(schema)
        at, values = [], []
        for place, payload in zip(places, payloads, strict=True):
            try:
                try:
                    value = decode(parse(payload, exact=exact))
                except NeedsExact:
                    value = decode(parse(payload, exact=True))
                values.append(value)
                at.append(place)
            except RecordError as error:
                on_failure(place, error)
        return pieces_of({schema: (at, values)}, count, on_failure)

    def _decode_envelopes(self, data: Any, on_failure: OnFailure) -> list[Piece]:
        """By their heads; what has an unusual form is parsed whole."""
        by_head: dict[bytes, tuple[Schema | None, list[int], list[bytes]]] = {}
        others: dict[Schema | None, tuple[list[int], list[Any]]] = {}
        head = b""
        for at, value in enumerate(data.to_pylist()):
            if value is None:
                _put(others, None, at, None)
                continue
            if not (head and value.startswith(head)):
                known = next((each for each in self._heads if value.startswith(each)), None)
                head = known or self._learn(value) or b""
            if head and value.endswith(b"}"):
                if head not in by_head:
                    by_head[head] = self._heads[head], [], []
                _, places, payloads = by_head[head]
                places.append(at)
                payloads.append(value[len(head) : -1])
                continue
            self._decode_whole(at, value, others, on_failure)
        pieces = []
        for schema, places, payloads in by_head.values():
            pieces += self._of_head(schema, data, places, payloads, others, on_failure)
        return pieces + pieces_of(others, len(data), on_failure)

    def _of_head(
        self,
        schema: Schema | None,
        data: Any,
        places: list[int],
        payloads: list[bytes],
        others: dict[Schema | None, tuple[list[int], list[Any]]],
        on_failure: OnFailure,
    ) -> list[Piece]:
        if schema is not None and (array := json_to_columns(schema, payloads, self._replaces_nulls)) is not None:
            at = None if len(places) == len(data) else pa.array(places, pa.int64())
            return [Piece(Column(schema, array), at)]
        decode, exact = decoder_of(schema, self._replaces_nulls), has_decimals(schema)
        for at, payload in zip(places, payloads, strict=True):
            try:
                tree = _single(payload) if not exact else None
                if tree is None:
                    raise NeedsExact
                _put(others, schema, at, decode(tree))
            except NeedsExact:
                self._decode_whole(at, data[at].as_py(), others, on_failure)
            except RecordError as error:
                on_failure(at, error)
        return []

    def _decode_whole(
        self,
        at: int,
        value: bytes,
        others: dict[Schema | None, tuple[list[int], list[Any]]],
        on_failure: OnFailure,
    ) -> None:
        try:
            envelope = parse(value, exact=True)
            if not isinstance(envelope, dict) or envelope.keys() != {"schema", "payload"}:
                raise DataError(
                    'with schemas.enable a record is {"schema": ..., "payload": ...} and nothing else: for plain JSON '
                    "set schemas.enable=false for this converter."
                )
            schema = self._schema(envelope["schema"])
            _put(others, schema, at, decoder_of(schema, self._replaces_nulls)(envelope["payload"]))
        except RecordError as error:
            on_failure(at, error)

    def _learn(self, value: bytes) -> bytes | None:
        """The bytes before the payload, if the schema comes first; its schema is kept with them."""
        try:
            text = value.decode()
            begin = _BEGIN.match(text)
            if begin is None:
                return None
            _, end = json.JSONDecoder(parse_float=str).raw_decode(text, begin.end())
            payload = _PAYLOAD.match(text, end)
            if payload is None or "\\u0000" in text[: payload.end()]:
                return None
            exact = parse(text[begin.end() : end].encode(), exact=True)
            schema = self._schema(exact)
        except (ValueError, RecursionError, RecordError):
            return None  # parsed whole, it says what is wrong
        head = text[: payload.end()].encode()
        _keep(self._heads, head, schema, self._cache_size)
        return head

    def _schema(self, tree: Any) -> Schema | None:
        key = json.dumps(tree, default=str)
        if key not in self._schemas:
            made = schema_from_json(tree, lambda schema, default: decoder_of(schema, self._replaces_nulls)(default))
            _keep(self._schemas, key, made, self._cache_size)
        return self._schemas[key]

    # --- columns to bytes

    def encode(self, topics: Any, column: Column, on_failure: OnFailure) -> Any:
        schema = column.schema
        begin, end = "", ""
        if self._has_schemas:
            begin, end = f'{{"schema":{self._schema_text(schema)},"payload":', "}"
        if schema is not None:
            encoded = columns_to_json(schema, column.data, self._replaces_nulls, self._as_numbers, begin, end)
            if encoded is not None:
                return encoded
        encode = encoder_of(schema, self._replaces_nulls, self._as_numbers)
        found: list[bytes | None] = [None] * len(column)
        for at, value in readable(column, on_failure):
            if value is None and schema is None:
                continue
            try:
                found[at] = f"{begin}{encode(value)}{end}".encode()
            except (RecordError, UnicodeEncodeError) as error:
                on_failure(at, error)
        return pa.array(found, pa.binary())

    def _schema_text(self, schema: Schema | None) -> str:
        if schema is None:
            return "null"
        if schema not in self._written:
            text = schema_to_json(
                schema, lambda each, value: encoder_of(each, self._replaces_nulls, self._as_numbers)(value)
            )
            _keep(self._written, schema, text, self._cache_size)
        return self._written[schema]


def _put(found: dict[Schema | None, tuple[list[int], list[Any]]], schema: Schema | None, at: int, value: Any) -> None:
    places, values = found.setdefault(schema, ([], []))
    places.append(at)
    values.append(value)


def _single(payload: bytes) -> Any:
    """A payload that is exactly one value of JSON and not null; None for anything else."""
    try:
        return FAST.decode(payload.decode())
    except (ValueError, RecursionError):
        return None


def _keep(cache: OrderedDict[Any, Any], key: Any, value: Any, most: int) -> None:
    cache[key] = value
    while len(cache) > most:
        cache.popitem(last=False)
