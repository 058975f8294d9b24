"""Java's property files, in which workers and connectors of standalone mode are configured."""

from __future__ import annotations

import re
from pathlib import Path

from ottla.common.errors import OttlaError

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPED = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_PAIR = re.compile(r"((?:\\.|[^\\=:\s])*)[ \t\f]*[=:]?[ \t\f]*(.*)", re.DOTALL)


def read_properties(path: str | Path) -> dict[str, str]:
    """Raises OttlaError."""
    try:
        text = Path(path).read_text()
    except OSError as error:
        raise OttlaError(f"cannot read {path}: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise OttlaError(f"{path} is not UTF-8.") from None
    return parse_properties(text)


def parse_properties(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in _lines(text):
        match = _PAIR.fullmatch(line)
        assert match is not None
        found[_plain(match[1])] = _plain(match[2])
    return found


def _lines(text: str) -> list[str]:
    """Without comments, and those that end in a backslash joined with the next."""
    lines: list[str] = []
    open_line: str | None = None
    for raw in re.split(r"\r\n|\r|\n", text):
        line = raw.lstrip(" \t\f")
        if open_line is None and (not line or line[0] in "#!"):
            continue
        whole = (open_line or "") + line
        backslashes = len(whole) - len(whole.rstrip("\\"))
        if backslashes % 2:
            open_line = whole[:-1]
        else:
            open_line = None
            lines.append(whole)
    return [*lines, open_line] if open_line else lines


def _plain(text: str) -> str:
    def character(match: re.Match[str]) -> str:
        escape = match[1]
        if len(escape) == 5:
            return chr(int(escape[1:], 16))
        return _ESCAPES.get(escape, escape)

    return _ESCAPED.sub(character, text)
