"""Patterns of java.text.SimpleDateFormat, in UTC and English: what TimestampConverter and TimestampRouter are set with.

Reading is as lenient as Java's: the 32nd of January is the first of February, text after the date is not looked at.
Weeks (`Y`, `w`, `W`, `F`) and the number of a weekday (`u`) are refused; of time zones `z` reads UTC, GMT and offsets.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from ottla.connect.conversion.errors import DataError
from ottla.connect.conversion.java_text import MILLIS_PER_DAY

_MONTHS = ("January February March April May June July August September October November December").split()  # noqa: SIM905
_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()  # noqa: SIM905
_KNOWN = "GyMLdDEaHkKhmsSzZX"
_NUMBERS = "ydDHkKhmsS"
_ZONE = re.compile(r"(?:GMT|UTC)?([+-])([0-9]{1,2}):?([0-9]{2})?|(GMT|UTC|UT|Z)", re.IGNORECASE)
_RFC_ZONE = re.compile(r"([+-])([0-9]{2})([0-9]{2})")
_ISO_ZONES = {
    1: re.compile(r"([+-])([0-9]{2})()|Z"),
    2: re.compile(r"([+-])([0-9]{2})([0-9]{2})|Z"),
    3: re.compile(r"([+-])([0-9]{2}):([0-9]{2})|Z"),
}


class BadPattern(ValueError):
    """What is wrong with a pattern."""


@dataclass(frozen=True)
class _Part:
    letter: str  # "" for text
    count: int
    text: str = ""

    @property
    def is_number(self) -> bool:
        return (self.letter in _NUMBERS and self.letter != "") or (self.letter in "ML" and 0 < self.count <= 2)


@lru_cache(maxsize=128)
def date_format(pattern: str) -> DateFormat:
    """Raises BadPattern."""
    return DateFormat(pattern)


class DateFormat:
    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self._parts = _parts(pattern)

    @property
    def is_by_day(self) -> bool:
        """What it writes is the same all day long."""
        return all(part.letter in "GyMLdDE" for part in self._parts)

    def format(self, millis: int) -> str:
        days, rest = divmod(millis, MILLIS_PER_DAY)
        year, month, day = _civil(days)
        if year < 1:
            raise DataError(f"the moment {millis} ms since 1970 is before the year 1.")
        hour = rest // 3_600_000
        numbers = {
            "d": day, "D": days - _days(year, 1) + 1, "H": hour, "k": hour or 24, "K": hour % 12,
            "h": hour % 12 or 12, "m": rest // 60_000 % 60, "s": rest // 1000 % 60, "S": rest % 1000,
        }  # fmt: skip
        out = []
        for part in self._parts:
            letter, count = part.letter, part.count
            if letter == "":
                out.append(part.text)
            elif letter in numbers:
                out.append(str(numbers[letter]).zfill(count))
            elif letter == "y":
                out.append(f"{year % 100:02d}" if count == 2 else str(year).zfill(count))
            elif letter in "ML":
                name = _MONTHS[month - 1]
                out.append(str(month).zfill(count) if count <= 2 else name if count > 3 else name[:3])
            elif letter == "E":
                name = _DAYS[(days + 3) % 7]
                out.append(name if count > 3 else name[:3])
            elif letter == "a":
                out.append("AM" if hour < 12 else "PM")
            elif letter == "G":
                out.append("AD")
            elif letter == "z":
                out.append("Coordinated Universal Time" if count >= 4 else "UTC")
            else:
                out.append("+0000" if letter == "Z" else "Z")
        return "".join(out)

    def parse(self, text: str) -> int:
        """Milliseconds since the epoch. Raises DataError."""
        found: dict[str, int] = {}
        at = 0
        for place, part in enumerate(self._parts):
            follows = self._parts[place + 1] if place + 1 < len(self._parts) else None
            moved = self._read(part, follows, text, at, found)
            if moved is None:
                raise DataError(f"'{text}' is no date as '{self.pattern}' writes them.")
            at = moved
        return _millis(found)

    def _read(self, part: _Part, follows: _Part | None, text: str, at: int, found: dict[str, int]) -> int | None:
        """Where it ends; None where the text is something else."""
        if part.letter == "":
            return at + len(part.text) if text.startswith(part.text, at) else None
        while at < len(text) and text[at] in " \t":
            at += 1
        if part.is_number:
            # Digits of two numbers without anything between them are told apart by their count.
            exactly = part.count if follows is not None and follows.is_number else None
            return _read_number(part, exactly, text, at, found)
        if part.letter in "ML":
            return _read_name(_MONTHS, text, at, found, "M")
        if part.letter == "E":
            return _read_name(_DAYS, text, at, found, "E")
        if part.letter == "a":
            return _read_name(["AM", "PM"], text, at, found, "a")
        if part.letter == "G":
            return _read_name(["AD", "BC"], text, at, found, "G")
        return _read_zone(part, text, at, found)


def _parts(pattern: str) -> list[_Part]:
    found: list[_Part] = []
    at = 0
    while at < len(pattern):
        letter = pattern[at]
        if letter == "'":
            text, at = _quoted(pattern, at)
            found.append(_Part("", 0, text))
        elif letter.isascii() and letter.isalpha():
            end = at
            while end < len(pattern) and pattern[end] == letter:
                end += 1
            if letter not in _KNOWN:
                known = "is refused here" if letter in "YwWFu" else "is no letter of a date pattern"
                raise BadPattern(f"'{letter}' {known}")
            if letter == "X" and end - at > 3:
                raise BadPattern("'X' stands at most three times")
            found.append(_Part(letter, end - at))
            at = end
        else:
            found.append(_Part("", 0, letter))
            at += 1
    return found


def _quoted(pattern: str, at: int) -> tuple[str, int]:
    if pattern.startswith("''", at):
        return "'", at + 2
    out = []
    at += 1
    while at < len(pattern):
        if pattern.startswith("''", at):
            out.append("'")
            at += 2
        elif pattern[at] == "'":
            return "".join(out), at + 1
        else:
            out.append(pattern[at])
            at += 1
    raise BadPattern("a quote is not closed")


def _read_number(part: _Part, exactly: int | None, text: str, at: int, found: dict[str, int]) -> int | None:
    pattern = r"-?[0-9]+" if exactly is None else rf"[0-9]{{1,{exactly}}}"
    digits = re.compile(pattern, re.ASCII).match(text, at)
    if digits is None or (exactly is not None and len(digits.group()) < exactly and len(text) < at + exactly):
        return None
    number = int(digits.group())
    if part.letter == "y":
        if part.count <= 2 and re.fullmatch("[0-9]{2}", digits.group(), re.ASCII):
            number = _with_century(number)
        found["y"] = number
    else:
        found["M" if part.letter == "L" else part.letter] = number
    return digits.end()


def _with_century(number: int) -> int:
    """Of two digits: within 80 years before and 20 after now."""
    import time

    first = time.gmtime().tm_year - 80
    century = first // 100 * 100
    return century + number if number >= first % 100 else century + 100 + number


def _read_name(names: list[str], text: str, at: int, found: dict[str, int], letter: str) -> int | None:
    rest = text[at:].lower()
    choices = [(word.lower(), number) for number, name in enumerate(names) for word in (name, name[:3])]
    matching = [(len(word), number) for word, number in choices if rest.startswith(word)]
    if not matching:
        return None
    length, number = max(matching)
    found[letter] = number + 1 if letter == "M" else number
    return at + length


def _read_zone(part: _Part, text: str, at: int, found: dict[str, int]) -> int | None:
    pattern = _ISO_ZONES[part.count] if part.letter == "X" else _ZONE
    zone = (_RFC_ZONE.match(text, at) if part.letter == "Z" else None) or pattern.match(text, at)
    if zone is None:
        return None
    sign, hours, minutes = zone.group(1), zone.group(2), zone.group(3)
    offset = 0 if not sign else (int(hours) * 60 + int(minutes or 0)) * 60_000
    found["zone"] = -offset if sign == "-" else offset
    return zone.end()


def _millis(found: dict[str, int]) -> int:
    year = found.get("y", 1970)
    if found.get("G") == 1:
        year = 1 - year
    if "D" in found and "d" not in found and "M" not in found:
        days = _days(year, 1) + found["D"] - 1
    else:
        days = _days(year, found.get("M", 1)) + found.get("d", 1) - 1
    if "H" in found or "k" in found:
        hours = found["H"] if "H" in found else 0 if found["k"] == 24 else found["k"]
    else:
        half = found.get("h", found.get("K", 0))
        hours = (0 if "h" in found and half == 12 else half) + 12 * found.get("a", 0)
    seconds = (hours * 60 + found.get("m", 0)) * 60 + found.get("s", 0)
    return days * MILLIS_PER_DAY + seconds * 1000 + found.get("S", 0) - found.get("zone", 0)


def _civil(days: int) -> tuple[int, int, int]:
    """Year, month and day of a day since the epoch: any, not only those that Python has."""
    shifted = days + 719_468
    era, of_era = divmod(shifted, 146_097)
    year_of_era = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    part = (5 * of_year + 2) // 153
    month = part + 3 if part < 10 else part - 9
    return year_of_era + era * 400 + (month <= 2), month, of_year - (153 * part + 2) // 5 + 1


def _days(year: int, month: int) -> int:
    """From the epoch to the first of a month, which may be the thirteenth."""
    year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    # Days from civil: years begin in March, so that the leap day is their last.
    shifted = year - (month <= 2)
    era = shifted // 400
    of_era = shifted - era * 400
    of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468
