"""Text of headers and literals as values with schemas: what Kafka Connect's `Values` parses and writes.

`true`, numbers, dates, times, `[1, 2]` and `{"a": 1}` are what they look like, anything else is a string. A number gets
the smallest type that holds it. Dates are read in UTC (Kafka Connect reads them in the time zone of its JVM).
"""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

from ottla.connect.api.data import DATE, TIME, Schema, SchemaType
from ottla.connect.conversion.errors import DataError
from ottla.connect.conversion.java_dates import date_format
from ottla.connect.conversion.java_text import (
    as_float32,
    base64_text,
    decimal_text,
    float_text,
    iso_text,
    millis_of,
    moment_of,
    parse_decimal,
)
from ottla.connect.conversion.schemas import (
    DATE_SCHEMA,
    FLOATS,
    INTEGERS,
    STRING_SCHEMA,
    TIME_SCHEMA,
    TIMESTAMP_SCHEMA,
    array_schema,
    decimal_schema,
    field_value,
    map_schema,
    pairs,
)

Parsed = tuple[Schema | None, Any]

NOTHING: Parsed = (None, None)
_BOOLEAN = Schema(SchemaType.BOOLEAN)
_DELIMITERS = frozenset(':,{}[]"')
_FLOAT_MAX = 3.4028235677973366e38  # what is above it rounds to infinity as a float
_TEMPORAL = {
    len("HH:mm:ss.SSSZ"): (TIME_SCHEMA, "HH:mm:ss.SSS'Z'"),
    len("yyyy-MM-ddTHH:mm:ss.SSSZ"): (TIMESTAMP_SCHEMA, "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'"),
    len("yyyy-MM-dd"): (DATE_SCHEMA, "yyyy-MM-dd"),
}
_WIDER = [SchemaType.INT8, SchemaType.INT16, SchemaType.INT32, SchemaType.INT64, *FLOATS]


def parse_value(text: str | None) -> Parsed:
    if text is None:
        return NOTHING
    if text == "":
        return STRING_SCHEMA, text
    return _ValueParser(text).parse(embedded=False) or NOTHING


class _Tokens:
    """Pieces between delimiters that no backslash stands before."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._at = 0
        self._next: str | None = None
        self.previous: str | None = None

    def mark(self) -> int:
        return self._at - (len(self._next) if self._next is not None else 0)

    def rewind(self, at: int) -> None:
        self._at, self._next, self.previous = at, None, None

    def has_next(self) -> bool:
        return self._next is not None or self._at < len(self.text)

    def next(self) -> str:
        if self._next is not None:
            self.previous, self._next = self._next, None
        else:
            self.previous = self._consume()
        return self.previous

    def several(self, count: int) -> str | None:
        start = self.mark()
        for _ in range(count):
            if not self.has_next():
                self.rewind(start)
                return None
            self.next()
        return self.text[start : self._at]

    def takes(self, expected: str) -> bool:
        if self._next is None:
            if not self.has_next():
                return False
            self._next = self._consume()
        while not self._next.strip() and self._at < len(self.text):
            self._next = self._consume()
        if self._next.strip() != expected:
            return False
        self._next = None
        return True

    def _consume(self) -> str:
        start, escaped = self._at, False
        while self._at < len(self.text):
            letter = self.text[self._at]
            if letter == "\\":
                escaped = not escaped
            elif letter in _DELIMITERS and not escaped:
                if start == self._at:
                    self._at += 1
                return self.text[start : self._at]
            else:
                escaped = False
            self._at += 1
        return self.text[start:]


class _ValueParser:
    def __init__(self, text: str) -> None:
        self._tokens = _Tokens(text)

    def parse(self, *, embedded: bool) -> Parsed | None:
        """None for null."""
        tokens = self._tokens
        if not tokens.has_next():
            return None
        if embedded and tokens.takes('"'):
            return self._quoted()
        for word, found in (("null", None), ("true", (_BOOLEAN, True)), ("false", (_BOOLEAN, False))):
            start = tokens.mark()
            if tokens.takes(word) and (embedded or not tokens.has_next()):
                return found
            tokens.rewind(start)
        start = tokens.mark()
        try:
            if tokens.takes("["):
                return self._array()
            if tokens.takes("{"):
                return self._map()
        except DataError:
            tokens.rewind(start)  # then it is a string
        token = tokens.next()
        return (STRING_SCHEMA, token) if not token.strip() else self._single(token.strip(), embedded)

    def _single(self, token: str, embedded: bool) -> Parsed:
        if token[0].isdigit() and (temporal := self._long_temporal(token)) is not None:
            return temporal
        if token[0].isdigit() or token[0] in "+-":
            try:
                return _number(parse_decimal(token))
            except DataError:
                pass  # then it is a string
        if embedded:
            raise DataError("a value within another is neither quoted nor a number.")
        return STRING_SCHEMA, self._tokens.text

    def _long_temporal(self, token: str) -> Parsed | None:
        """A time has colons, which delimit tokens."""
        start = self._tokens.mark()
        rest = self._tokens.several(4)
        if rest is not None and (found := _temporal(token + rest)) is not None:
            return found
        self._tokens.rewind(start)
        return _temporal(token)

    def _quoted(self) -> Parsed:
        parts = []
        while self._tokens.has_next():
            if self._tokens.takes('"'):
                break
            parts.append(self._tokens.next())
        text = "".join(parts)
        return _temporal(text) or (STRING_SCHEMA, text)

    def _array(self) -> Parsed:
        tokens, values, schemas = self._tokens, list[Any](), _Common()
        while tokens.has_next():
            if tokens.takes("]"):
                schema = schemas.schema
                return array_schema(schema), [_aligned(schema, value) for value in values]
            if tokens.takes(","):
                raise DataError("an element of an array is empty.")
            element = self.parse(embedded=True)
            schemas.add(element)
            values.append(element[1] if element is not None else None)
            start = tokens.mark()
            if tokens.takes("]"):
                tokens.rewind(start)
            elif not tokens.takes(","):
                raise DataError("elements of an array are separated by ','.")
        raise DataError("an array has no end.")

    def _map(self) -> Parsed:
        tokens, found, keys, values = self._tokens, dict[Any, Any](), _Common(), _Common()
        while tokens.has_next():
            if tokens.takes("}"):
                key_schema, value_schema = keys.schema, values.schema if keys.schema is not None else None
                entries = [(_aligned(key_schema, key), _aligned(value_schema, item)) for key, item in found.items()]
                return map_schema(key_schema, value_schema), entries
            if tokens.takes(","):
                raise DataError("an entry of a map is empty.")
            key = self.parse(embedded=True)
            if key is None or key[1] is None or isinstance(key[1], list):
                raise DataError("a key of a map is null, or no single value.")
            if not tokens.takes(":"):
                raise DataError("a key of a map is followed by ':'.")
            value = self.parse(embedded=True)
            found[key[1]] = value[1] if value is not None else None
            tokens.takes(",")
            keys.add(key)
            values.add(value)
        raise DataError("a map has no end.")


class _Common:
    """The schema that elements have in common; None once they have none."""

    def __init__(self) -> None:
        self.schema: Schema | None = None
        self._compatible = True

    def add(self, latest: Parsed | None) -> None:
        if latest is None or latest[0] is None or not self._compatible:
            return
        self.schema = latest[0] if self.schema is None else _merged(self.schema, latest[0])
        self._compatible = self.schema is not None


def _merged(one: Schema, other: Schema) -> Schema | None:
    if one.type is other.type:
        return other
    if one.type in _WIDER and other.type in _WIDER:
        return max(one, other, key=lambda schema: _WIDER.index(schema.type))
    return None


def _aligned(schema: Schema | None, value: Any) -> Any:
    """Raises DataError for a null among values that have a schema."""
    if schema is None:
        return value
    if value is None:
        raise DataError("a null stands among values that have a schema.")
    if schema.type is SchemaType.FLOAT32:
        return as_float32(float(value))
    return float(value) if schema.type is SchemaType.FLOAT64 else value


def _temporal(text: str) -> Parsed | None:
    text = text.replace("\\:", ":")
    if len(text) not in _TEMPORAL:
        return None
    schema, pattern = _TEMPORAL[len(text)]
    try:
        moment = moment_of(date_format(pattern).parse(text))
    except DataError:
        return None
    return schema, moment.date() if schema.name == DATE else moment.time() if schema.name == TIME else moment


def _number(number: Decimal) -> Parsed:
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int)
    size = number.copy_abs()
    if (size >= 1 or size == 0) and size <= Decimal("1e19") and number == number.to_integral_value():
        whole = int(number)
        for kind, bits in INTEGERS.items():
            if -(1 << (bits - 1)) <= whole < 1 << (bits - 1):
                return Schema(kind), whole
    if exponent != 0:
        if size < Decimal(_FLOAT_MAX):
            return Schema(SchemaType.FLOAT32), as_float32(float(number))
        if size < Decimal("1.797693134862315807e308"):
            return Schema(SchemaType.FLOAT64), float(number)
    return decimal_schema(-exponent), number


# --- values to text


def value_text(schema: Schema | None, value: Any, *, embedded: bool = False) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"' if embedded else value
    if isinstance(value, float):
        return float_text(value, single=schema is not None and schema.type is SchemaType.FLOAT32)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, Decimal):
        return decimal_text(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return f'"{base64_text(bytes(value))}"' if embedded else base64_text(bytes(value))
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return iso_text(millis_of(value))
    if schema is not None and schema.type is SchemaType.STRUCT:
        fields = (
            value_text(None, each.name, embedded=True)
            + ":"
            + value_text(each.schema, field_value(value, each), embedded=True)
            for each in schema.fields
        )
        return f"{{{','.join(fields)}}}"
    if isinstance(value, dict) or (schema is not None and schema.type is SchemaType.MAP):
        key_schema, value_schema = (None, None) if schema is None else (schema.key_schema, schema.value_schema)
        entries = (
            f"{value_text(key_schema, key, embedded=True)}:{value_text(value_schema, item, embedded=True)}"
            for key, item in pairs(value)
        )
        return f"{{{','.join(entries)}}}"
    item_schema = None if schema is None else schema.value_schema
    return f"[{','.join(value_text(item_schema, item, embedded=True) for item in value)}]"
