"""kcat's format strings: printing and reading records, and JSON lines that survive the round trip."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import click
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.cli.records.record_format import Draft, compile_printer, compile_reader, unescape
from ottla.cli.records.record_json import from_json, to_json


@dataclass
class FakeMessage:
    """What the printers ask of confluent_kafka.Message."""

    key_: bytes | None = b"k"
    value_: bytes | None = b"v"
    headers_: list[tuple[str, bytes | None]] = field(default_factory=lambda: [("a", b"1"), ("b", None)])

    def topic(self) -> str:
        return "t"

    def partition(self) -> int:
        return 3

    def offset(self) -> int:
        return 42

    def timestamp(self) -> tuple[int, int]:
        return 1, 1700000000000

    def key(self) -> bytes | None:
        return self.key_

    def value(self) -> bytes | None:
        return self.value_

    def headers(self) -> list[tuple[str, bytes | None]] | None:
        return self.headers_


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        (r"%t [%p] at %o: %k=%s\n", b"t [3] at 42: k=v\n"),
        (r"%T %h %K %S", b"1700000000000 a=1,b=NULL 1 1"),
        (r"100%%\t\x41\\", b"100%\tA\\"),
        ("%R%s", b"\x00\x00\x00\x01v"),
        ("ä%s", "äv".encode()),
        ("", b""),
    ],
)
def test_a_format_prints_a_record(text: str, printed: bytes) -> None:
    assert compile_printer(text)(FakeMessage()) == printed


def test_null_key_and_value_print_as_nothing_with_length_minus_one() -> None:
    assert compile_printer("%k|%s|%K|%S|%h")(FakeMessage(None, None, [])) == b"||-1|-1|"


@pytest.mark.parametrize("text", ["%x", "%", r"\q", "\\", "%s %"])
def test_a_bad_format_is_a_usage_error(text: str) -> None:
    with pytest.raises(click.UsageError, match="-f knows no"):
        compile_printer(text)


@pytest.mark.parametrize(
    ("text", "line", "draft"),
    [
        ("%s", b"plain", Draft(b"plain")),
        (r"%k\t%s", b"key\tva\tlue", Draft(b"va\tlue", b"key")),
        (r"%k:%s\n", b"key:", Draft(b"", b"key")),
        ("%p,%T,%s", b"2,1700,x", Draft(b"x", partition=2, timestamp=1700)),
        ("[%h] %s", b"[a=1,b=x=y] v", Draft(b"v", headers=[("a", b"1"), ("b", b"x=y")])),
        ("%k %s", b"no-space", None),
        ("%p %s", b"x v", None),
        ("%k=%s", b"\xff=\xfe", Draft(b"\xfe", b"\xff")),
    ],
)
def test_a_format_reads_a_line(text: str, line: bytes, draft: Draft | None) -> None:
    assert compile_reader(text)(line) == draft


@pytest.mark.parametrize("text", ["", "no field", "%k%s", "%s %s", "%o %s", "%t"])
def test_a_format_that_cannot_be_read_back_is_a_usage_error(text: str) -> None:
    with pytest.raises(click.UsageError, match="-f"):
        compile_reader(text)


def test_a_delimiter_may_be_escaped() -> None:
    assert unescape(r"\t", "-K") == b"\t"
    assert unescape("%", "-K") == b"%"


@settings(deadline=None)
@given(
    st.none() | st.binary(),
    st.none() | st.binary(),
    st.lists(st.tuples(st.text(), st.none() | st.binary())),
)
def test_a_json_line_keeps_every_byte(
    key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes | None]]
) -> None:
    line = json.dumps(to_json(FakeMessage(key, value, headers))).encode()
    assert from_json(line) == Draft(value, key, 3, 1700000000000, headers or None)


@pytest.mark.parametrize(
    "line", [b"", b"nope", b"[1]", b'{"partition": "x"}', b'{"value_base64": "*"}', b'{"headers": [1]}', b"[" * 100_000]
)
def test_a_line_that_is_no_record_is_refused(line: bytes) -> None:
    assert from_json(line) is None


def test_json_objects_as_values_are_sent_as_json() -> None:
    assert from_json(b'{"value": {"a": [1, 2]}}') == Draft(b'{"a": [1, 2]}')
