"""Java's `.properties` syntax, which `server.properties` is written in.

A natural line that ends in an odd number of backslashes goes on in the next one, whose leading blanks are dropped. `#`
and `!` begin a comment at the start of a line only. The key ends at the first `=`, `:` or blank that is not escaped. A
later line for the same key wins, as in Java.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ottla.common.errors import OttlaError

_BLANKS = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPE = re.compile(r"\\(u+[0-9a-fA-F]{4}|u|.)", re.DOTALL)
_KEY_END = re.compile(r"(?:[^\\=: \t\f]|\\.)*", re.DOTALL)
_SEPARATOR = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")


def read_properties(path: str | Path) -> dict[str, str]:
    """The properties of a file; OttlaError if it cannot be read."""
    try:
        return parse_properties(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise OttlaError(f"Cannot read the configuration file {path}: {error.strerror}.") from error
    except ValueError as error:
        raise OttlaError(f"The configuration file {path} is not valid: {error}.") from error


def parse_properties(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in _logical_lines(text):
        key = _KEY_END.match(line)
        separator = _SEPARATOR.match(line, key.end()) if key else None
        if key and separator:
            found[_unescape(key.group())] = _unescape(line[separator.end() :])
    return found


def _logical_lines(text: str) -> Iterator[str]:
    """Lines without comments and blank lines, continuations joined."""
    begun: str | None = None
    for natural in re.split(r"\r\n|\n|\r", text):
        line = natural.lstrip(_BLANKS)
        if begun is None and (not line or line[0] in "#!"):
            continue
        line = (begun or "") + line
        goes_on = (len(line) - len(line.rstrip("\\"))) % 2 == 1
        begun = line[:-1] if goes_on else None
        if not goes_on:
            yield line
    if begun:
        yield begun


def _unescape(text: str) -> str:
    return _ESCAPE.sub(_unescaped, text) if "\\" in text else text


def _unescaped(match: re.Match[str]) -> str:
    escape = match.group(1)
    if escape == "u":
        raise ValueError("\\u must be followed by four hexadecimal digits")
    if escape[0] == "u":
        return chr(int(escape[-4:], 16))
    return _ESCAPES.get(escape, escape)
