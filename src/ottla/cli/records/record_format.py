"""kcat's format strings, for printing records (`consume -f`) and for reading them (`produce -f`).

    %t topic  %p partition  %o offset  %T timestamp in ms  %k key  %s value  %h headers as a=b,c=d
    %K, %S length of key, value in bytes (-1 for null)  %R the value's length as 4 bytes, big-endian  %% a percent sign
    \\n \\r \\t \\\\ \\xHH

A format is compiled once to a list of pieces; a record then costs one call per piece.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import click

ESCAPES = {"n": b"\n", "r": b"\r", "t": b"\t", "\\": b"\\", "0": b"\0"}
PIECE = re.compile(r"%(?P<field>.?)|\\x(?P<hex>[0-9a-fA-F]{1,2})|\\(?P<escape>.?)|(?P<text>[^%\\]+)", re.DOTALL)

Headers = Sequence[tuple[str, bytes | None]]


@dataclass(frozen=True)
class Field:
    letter: str


def parse_format(text: str, letters: str, flag: str = "-f") -> list[bytes | Field]:
    """Literal bytes and fields in turn; neighbouring literals are joined."""
    pieces: list[bytes | Field] = []
    for match in PIECE.finditer(text):
        literal = _literal(match, flag, letters)
        if literal is None:
            pieces.append(Field(match["field"]))
        elif pieces and isinstance(pieces[-1], bytes):
            pieces[-1] += literal
        else:
            pieces.append(literal)
    return pieces


def _literal(match: re.Match[str], flag: str, letters: str) -> bytes | None:
    """The bytes of a piece, or None when it is a field."""
    if match["text"] is not None:
        return match["text"].encode()
    if match["hex"] is not None:
        return bytes([int(match["hex"], 16)])
    if match["escape"] is not None:
        if match["escape"] not in ESCAPES:
            raise click.UsageError(f"{flag} knows no '{match[0]}': use \\n, \\t, \\r, \\\\ or \\xHH.")
        return ESCAPES[match["escape"]]
    if match["field"] == "%":
        return b"%"
    if not match["field"] or match["field"] not in letters:
        known = " ".join(f"%{letter}" for letter in letters)
        raise click.UsageError(f"{flag} knows no '{match[0]}': use {known} or %%.")
    return None


def unescape(text: str, flag: str) -> bytes:
    """A delimiter as typed: `\\t` means a tab."""
    return b"".join(piece for piece in parse_format(text.replace("%", "%%"), "", flag) if isinstance(piece, bytes))


# -- printing ------------------------------------------------------------------------------------------------------


def headers_text(headers: Headers) -> bytes:
    return b",".join(name.encode() + b"=" + (b"NULL" if value is None else value) for name, value in headers)


def _length(data: bytes | None) -> int:
    return -1 if data is None else len(data)


PRINTERS: dict[str, Callable[[Any], bytes]] = {
    "t": lambda message: message.topic().encode(),
    "p": lambda message: b"%d" % message.partition(),
    "o": lambda message: b"%d" % message.offset(),
    "T": lambda message: b"%d" % message.timestamp()[1],
    "k": lambda message: message.key() or b"",
    "s": lambda message: message.value() or b"",
    "h": lambda message: headers_text(message.headers() or ()),
    "K": lambda message: b"%d" % _length(message.key()),
    "S": lambda message: b"%d" % _length(message.value()),
    "R": lambda message: struct.pack(">i", _length(message.value())),
}


def compile_printer(text: str) -> Callable[[Any], bytes]:
    """A function from a confluent_kafka.Message to the bytes to write."""
    pieces = parse_format(text, "".join(PRINTERS))
    parts = [_constant(piece) if isinstance(piece, bytes) else PRINTERS[piece.letter] for piece in pieces]
    return lambda message: b"".join([part(message) for part in parts])


def _constant(data: bytes) -> Callable[[Any], bytes]:
    return lambda message: data


# -- reading -------------------------------------------------------------------------------------------------------


@dataclass
class Draft:
    """A record to send. None in `key` and `value` is null; None elsewhere leaves the choice to the producer."""

    value: bytes | None = None
    key: bytes | None = None
    partition: int | None = None
    timestamp: int | None = None
    headers: list[tuple[str, bytes | None]] | None = None


READABLE = "kspTh"
INTEGER = rb"\d+"


def compile_reader(text: str) -> Callable[[bytes], Draft | None]:
    """A function from a line to its record, None where the line does not fit the format.

    A field ends where the text that follows it in the format first appears; the last field takes the rest.
    """
    pieces = parse_format(text, READABLE)
    if pieces and isinstance(pieces[-1], bytes):
        pieces[-1] = pieces[-1].removesuffix(b"\n")
    _require_readable(pieces)
    parts = [re.escape(piece) if isinstance(piece, bytes) else _group(piece.letter) for piece in pieces]
    pattern = re.compile(b"".join(parts), re.DOTALL)

    def read(line: bytes) -> Draft | None:
        match = pattern.fullmatch(line)
        return None if match is None else _draft(match.groupdict())

    return read


def _require_readable(pieces: list[bytes | Field]) -> None:
    fields = [piece.letter for piece in pieces if isinstance(piece, Field)]
    if not fields:
        raise click.UsageError("-f names no field: use %s for the value, and %k %p %T %h.")
    if len(set(fields)) < len(fields):
        raise click.UsageError("-f names a field twice.")
    for piece, following in pairwise(pieces):
        if isinstance(piece, Field) and isinstance(following, Field):
            raise click.UsageError(f"-f needs some text between %{piece.letter} and %{following.letter} to part them.")


def _group(letter: str) -> bytes:
    body = INTEGER if letter in "pT" else rb".*?"
    return b"(?P<%s>%s)" % (letter.encode(), body)


def _draft(found: dict[str, bytes]) -> Draft:
    draft = Draft(value=found.get("s"), key=found.get("k"))
    if "p" in found:
        draft.partition = int(found["p"])
    if "T" in found:
        draft.timestamp = int(found["T"])
    if found.get("h"):
        draft.headers = [parse_header(header) for header in found["h"].split(b",")]
    return draft


def parse_header(text: bytes) -> tuple[str, bytes | None]:
    name, _, value = text.partition(b"=")
    return name.decode("utf-8", "replace"), value
