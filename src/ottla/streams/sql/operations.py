"""What operators and functions of SQL do with values, as Spark does it. None is NULL. Nothing here raises for a value
of the right type: what cannot be computed (a division by zero, an overflow) is NULL."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

from ottla.streams.sql.row_serde import LEAST, MOST

_WHOLE = re.compile(r"[+-]?\d+", re.ASCII)
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?[df]?", re.ASCII | re.IGNORECASE)
_NAMED_NUMBERS = {"nan": math.nan, "inf": math.inf, "infinity": math.inf}
_DIGITS_MAX = 19
# What Spark strips before it reads a number.
_BLANK = "".join(map(chr, range(0x21))) + "\x7f"
# 16 digits before the point, and 15 behind it.
_ROUNDING = Context(prec=40)
_TRUE, _FALSE = frozenset(["t", "true", "y", "yes", "1"]), frozenset(["f", "false", "n", "no", "0"])


def whole(number: int) -> int | None:
    """As a BIGINT."""
    return number if LEAST <= number <= MOST else None


def divide_whole(left: int, right: int) -> int | None:
    """Towards zero, as in Java."""
    if right == 0:
        return None
    found = abs(left) // abs(right)
    return whole(found if (left < 0) == (right < 0) else -found)


def modulo_whole(left: int, right: int) -> int | None:
    """With the sign of the left one, as in Java."""
    return None if right == 0 else int(math.copysign(1, left)) * (abs(left) % abs(right))


def divide(left: float, right: float) -> float | None:
    return None if right == 0 else left / right


def modulo(left: float, right: float) -> float | None:
    if right == 0:
        return None
    return math.nan if math.isinf(left) else math.fmod(left, right)


# NaN equals itself and is larger than all other numbers, in Spark.
def same(left: float, right: float) -> bool:
    return left == right or (left != left and right != right)


def same_or_null(left: Any, right: Any) -> bool:
    """Two NULLs are the same as well."""
    if left is None or right is None:
        return left is right
    return bool(left == right) or (left != left and right != right)


def above(left: float, right: float) -> bool:
    return left > right or (left != left and right == right)


def floor(number: float) -> int | None:
    return whole(math.floor(number)) if math.isfinite(number) else None


def ceil(number: float) -> int | None:
    return whole(math.ceil(number)) if math.isfinite(number) else None


def round_half_up(number: float, digits: int) -> float:
    if not math.isfinite(number) or abs(number) >= 2**52:  # a whole number
        return number
    exact = Decimal(repr(number)).quantize(Decimal(1).scaleb(-digits), rounding=ROUND_HALF_UP, context=_ROUNDING)
    return float(exact)


def substring(text: str, start: int, length: int) -> str:
    """From 1; from the end if it is negative; 0 is as 1."""
    begin = start - 1 if start > 0 else len(text) + start if start < 0 else 0
    end = begin + length
    return text[max(0, begin) : max(0, end)]


def like(pattern: str) -> re.Pattern[str]:
    """Raises ValueError for a backslash that escapes nothing."""
    parts, signs = [], iter(pattern)
    for sign in signs:
        if sign == "\\":
            escaped = next(signs, "")
            if escaped not in ("%", "_", "\\"):
                raise ValueError("in LIKE a backslash stands before %, _ or another backslash")
            parts.append(re.escape(escaped))
        else:
            parts.append({"%": ".*", "_": "."}.get(sign) or re.escape(sign))
    return re.compile("".join(parts), re.DOTALL)


# --- casts


def text_to_whole(text: str) -> int | None:
    stripped = text.strip(_BLANK)
    if not _WHOLE.fullmatch(stripped):
        return None
    sign, digits = stripped[:1].strip("+0123456789"), stripped.lstrip("+-").lstrip("0") or "0"
    return whole(int(sign + digits)) if len(digits) <= _DIGITS_MAX else None  # Python refuses thousands of digits


def text_to_number(text: str) -> float | None:
    stripped = text.strip(_BLANK)
    if _NUMBER.fullmatch(stripped):
        return float(stripped.rstrip("dDfF"))
    sign = -1.0 if stripped[:1] == "-" else 1.0
    named = _NAMED_NUMBERS.get(stripped.removeprefix("-" if sign < 0 else "+").lower())
    return None if named is None or (named != named and stripped[:1] in "+-") else sign * named


def text_to_boolean(text: str) -> bool | None:
    stripped = text.strip(_BLANK).lower()
    return True if stripped in _TRUE else False if stripped in _FALSE else None


def number_to_whole(number: float) -> int | None:
    return whole(int(number)) if math.isfinite(number) else None


def boolean_to_text(value: bool) -> str:
    return "true" if value else "false"


# --- NULL


def strict(function: Callable[..., Any], *arguments: Callable[..., Any]) -> Callable[..., Any]:
    """NULL if any argument is."""
    if len(arguments) == 1:
        (only,) = arguments

        def one(key: Any, value: Any, time_ms: int) -> Any:
            given = only(key, value, time_ms)
            return None if given is None else function(given)

        return one
    if len(arguments) == 2:
        left, right = arguments

        def two(key: Any, value: Any, time_ms: int) -> Any:
            first = left(key, value, time_ms)
            if first is None:
                return None
            second = right(key, value, time_ms)
            return None if second is None else function(first, second)

        return two

    def several(key: Any, value: Any, time_ms: int) -> Any:
        given = [argument(key, value, time_ms) for argument in arguments]
        return None if None in given else function(*given)

    return several
