"""Java's properties syntax."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.common.config import parse_properties, read_properties
from ottla.common.errors import OttlaError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1\nb:2\nc 3\n", {"a": "1", "b": "2", "c": "3"}),
        ("  a  =  1  \n", {"a": "1  "}),
        ("# comment\n! comment\n\n  \n\t# indented\na=1", {"a": "1"}),
        ("a=1 # not a comment", {"a": "1 # not a comment"}),
        ("a=one,\\\n   two,\\\n\tthree\nb=2", {"a": "one,two,three", "b": "2"}),
        ("a=x\\\\\nb=2", {"a": "x\\", "b": "2"}),
        ("a=1\\\n# goes on\nb=2", {"a": "1# goes on", "b": "2"}),
        ("a\\ b\\=c\\:d=1", {"a b=c:d": "1"}),
        ("a=\\t\\n\\u0041\\q", {"a": "\t\nAq"}),
        ("a==1", {"a": "=1"}),
        ("a = : b", {"a": ": b"}),
        ("a", {"a": ""}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a=1\na=2", {"a": "2"}),
        ("\\\na=1", {"a": "1"}),
        ("a=1\\", {"a": "1"}),
        ("", {}),
    ],
)
def test_syntax(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text) == expected


_TEXT = st.text(st.characters(min_codepoint=32, max_codepoint=0x2FF), min_size=1)


def _escape(text: str) -> str:
    return "".join(f"\\{c}" if c in "\\=: #!" else c for c in text)


@given(st.dictionaries(_TEXT, _TEXT))
def test_what_is_escaped_comes_back(properties: dict[str, str]) -> None:
    text = "\n".join(f"{_escape(key)} = {_escape(value)}" for key, value in properties.items())
    assert parse_properties(text) == properties


def test_a_file_that_cannot_be_read_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(OttlaError, match=r"Cannot read the configuration file .*No such file"):
        read_properties(tmp_path / "missing.properties")
    broken = tmp_path / "broken.properties"
    broken.write_text("a=\\u12")
    with pytest.raises(OttlaError, match="four hexadecimal digits"):
        read_properties(broken)
