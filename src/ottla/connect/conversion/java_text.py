"""Numbers and values as Java writes and reads them: what `Cast` to a string, StringConverter and headers give.

Java's own text of a double is the shortest that reads back as the same number, as Python's is (before Java 19 it was
sometimes longer); only the form differs.
"""

from __future__ import annotations

import base64
import datetime
import math
import re
import struct
from decimal import Decimal
from typing import Any

import pyarrow.compute as pc

from ottla.connect.api.data import Schema, SchemaType
from ottla.connect.conversion.errors import DataError
from ottla.connect.conversion.schemas import pairs

MILLIS_PER_DAY = 86_400_000
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
# What Python's datetime holds.
_FIRST, _LAST = -62_135_596_800_000, 253_402_300_799_999
_INT_MAX = 2**31 - 1
_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_FLOAT = re.compile(
    r"[\x00-\x20]*([+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?))[\x00-\x20]*", re.ASCII
)
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII)


# --- numbers


def wrapped(value: int, bits: int) -> int:
    """The lowest bits, with a sign: what a cast of an integer keeps."""
    half = 1 << (bits - 1)
    return ((value + half) & ((1 << bits) - 1)) - half


def narrowed(value: float, bits: int) -> int:
    """A floating-point number as an integer: towards zero, and the nearest there is if it does not fit an int (for 64
    bits, a long); the smaller ones are cut from an int."""
    if math.isnan(value):
        return 0
    wide = 64 if bits == 64 else 32
    least, most = -(1 << (wide - 1)), (1 << (wide - 1)) - 1
    if math.isinf(value):
        return wrapped(most if value > 0 else least, bits)
    return wrapped(min(max(int(value), least), most), bits)


def as_float32(value: float) -> float:
    try:
        found: float = struct.unpack("f", struct.pack("f", value))[0]
        return found
    except OverflowError:
        return math.copysign(math.inf, value)


def parse_integer(text: str, bits: int) -> int:
    if not _INTEGER.fullmatch(text) or not -(1 << (bits - 1)) <= int(text) < 1 << (bits - 1):
        raise DataError(f"'{text}' is no integer of {bits} bits.")
    return int(text)


def parse_float(text: str) -> float:
    found = _FLOAT.fullmatch(text)
    if found is None:
        raise DataError(f"'{text}' is no number.")
    word = found.group(1)
    if "NaN" not in word and "Infinity" not in word:
        word = word.rstrip("fFdD")
    return float(word.replace("Infinity", "inf"))


def parse_decimal(text: str) -> Decimal:
    exponent = text.lower().partition("e")[2] if _DECIMAL.fullmatch(text) else str(_INT_MAX + 1)
    if exponent and abs(int(exponent)) > _INT_MAX:
        raise DataError(f"'{text}' is no number.")
    return Decimal(text)


def float_text(value: float, *, single: bool = False) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "-0.0" if math.copysign(1, value) < 0 else "0.0"
    sign, digits, exponent = Decimal(_shortest_single(value) if single else repr(value)).as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits)).rstrip("0") or "0"
    point = len(digits) + exponent  # where the point stands in 0.DIGITS
    minus = "-" if sign else ""
    if -3 < point <= 7:
        if point <= 0:
            return f"{minus}0.{'0' * -point}{text}"
        text = text.ljust(point, "0")
        return f"{minus}{text[:point]}.{text[point:] or '0'}"
    return f"{minus}{text[0]}.{text[1:] or '0'}E{point - 1}"


def _shortest_single(value: float) -> str:
    for digits in range(1, 10):
        text = f"{value:.{digits}g}"
        if as_float32(float(text)) == value:
            return text
    return repr(value)


def decimal_text(value: Decimal) -> str:
    """As BigDecimal writes it."""
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits))
    adjusted = exponent + len(digits) - 1
    minus = "-" if sign and any(digits) else ""
    if exponent <= 0 and adjusted >= -6:
        if exponent == 0:
            return minus + text
        text = text.rjust(1 - exponent, "0")
        return f"{minus}{text[:exponent]}.{text[exponent:]}"
    mantissa = text[0] + (f".{text[1:]}" if len(text) > 1 else "")
    return f"{minus}{mantissa}E{adjusted:+d}"


# --- times


def millis_of(value: datetime.datetime | datetime.date | datetime.time) -> int:
    """Since the epoch, as java.util.Date has it."""
    if isinstance(value, datetime.datetime):
        aware = value if value.tzinfo is not None else value.replace(tzinfo=datetime.UTC)
        return (aware - EPOCH) // datetime.timedelta(milliseconds=1)
    if isinstance(value, datetime.date):
        return (value - EPOCH.date()).days * MILLIS_PER_DAY
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1000 + value.microsecond // 1000


def moment_of(millis: int) -> datetime.datetime:
    """Raises DataError for moments that Python does not have."""
    try:
        return EPOCH + datetime.timedelta(milliseconds=millis)
    except OverflowError:
        raise DataError(f"the moment {millis} ms since 1970 is not between the years 1 and 9999.") from None


def are_moments(millis: Any) -> bool:
    """Of a column of integers: whether Python has them all."""
    found = pc.min_max(millis).as_py()
    return found["min"] is None or (found["min"] >= _FIRST and found["max"] <= _LAST)


def iso_text(millis: int) -> str:
    """The form that Kafka Connect chooses by the value: a time on the first day (and before), a date at midnight, else
    both."""
    moment = moment_of(millis)
    time = f"{moment:%H:%M:%S}.{moment.microsecond // 1000:03d}Z"
    date = f"{moment.year:04d}-{moment:%m-%d}"
    if millis < MILLIS_PER_DAY:
        return time
    return date if millis % MILLIS_PER_DAY == 0 else f"{date}T{time}"


# --- any value


def text_of(schema: Schema | None, value: Any) -> str:
    """`toString()`. A map is written in the order in which it is, not in Java's order of hashes."""
    if isinstance(value, str):
        return value
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return float_text(value, single=schema is not None and schema.type is SchemaType.FLOAT32)
    if isinstance(value, Decimal):
        return decimal_text(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, bytes | bytearray | memoryview):
        raise DataError("bytes have no text of their own: cast them to a string first, which gives base64.")
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        moment = moment_of(millis_of(value))
        return f"{moment:%a %b %d %H:%M:%S} UTC {moment.year:04d}"
    if schema is not None and schema.type is SchemaType.STRUCT:
        parts = [(each, value.get(each.name)) for each in schema.fields]
        shown = (f"{each.name}={text_of(each.schema, part)}" for each, part in parts if part is not None)
        return f"Struct{{{','.join(shown)}}}"
    if (schema is not None and schema.type is SchemaType.MAP) or isinstance(value, dict):
        key_schema, value_schema = (None, None) if schema is None else (schema.key_schema, schema.value_schema)
        shown = (f"{text_of(key_schema, key)}={text_of(value_schema, item)}" for key, item in pairs(value))
        return f"{{{', '.join(shown)}}}"
    item_schema = None if schema is None else schema.value_schema
    return f"[{', '.join(text_of(item_schema, item) for item in value)}]"


def base64_text(value: bytes) -> str:
    return base64.b64encode(value).decode()
