"""Tables, sizes, and YAML that other programs read."""

from __future__ import annotations

import pytest

from ottla.cli.config_entries import human_value
from ottla.cli.output import facts, human_bytes, human_ms, plural, table
from ottla.cli.yaml_text import to_yaml


def test_columns_are_aligned_and_numbers_are_on_the_right() -> None:
    assert table(["NAME", "N"], [("a", 1), ("long name", 1000), ("b", None)]) == [
        "NAME          N",
        "a             1",
        "long name  1000",
        "b             -",
    ]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a\x1b[2J\x1b[H", "a\\x1b[2J\\x1b[H"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("two\nlines\r", "two\\nlines\\r"),
        ("\x9b1mold\x7f", "\\x9b1mold\\x7f"),
        ("\u202etxt.exe", "\\u202etxt.exe"),
        ("\x1b[31mred\x1b[0m", "\x1b[31mred\x1b[0m"),  # as `paint` writes it
        ("Zürich 東京", "Zürich 東京"),
    ],
)
def test_what_others_call_things_does_not_reach_the_terminal(name: str, text: str) -> None:
    """A group may be called whatever its consumer says, also what clears the screen of whoever lists groups."""
    assert table(["GROUP"], [(name,)])[1] == text
    assert facts([("group", name)]) == [f"group  {text}"]


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (1 << 30, "1 GiB"), (1 << 50, "1024 TiB")]
)
def test_sizes(count: int, text: str) -> None:
    assert human_bytes(count) == text


@pytest.mark.parametrize(("ms", "text"), [(5, "5 ms"), (1500, "1.5 s"), (604_800_000, "7 d"), (3_600_000, "1 h")])
def test_durations(ms: int, text: str) -> None:
    assert human_ms(ms) == text


def test_settings_show_what_their_numbers_mean() -> None:
    assert human_value("retention.ms", "604800000") == "604800000 (7 d)"
    assert human_value("segment.bytes", "1073741824") == "1073741824 (1 GiB)"
    assert human_value("retention.bytes", "-1") == "-1 (no limit)"
    assert human_value("cleanup.policy", "compact") == "compact"
    assert human_value("x", None) is None


def test_plural() -> None:
    assert [plural(n, "record") for n in (0, 1, 1000)] == ["0 records", "1 record", "1,000 records"]


def test_yaml_is_block_style_and_quotes_what_is_ambiguous() -> None:
    data = [{"name": "a", "tags": ["x", "yes", "1.5", ""], "inner": {"n": 1, "none": None}, "empty": []}]
    assert to_yaml(data) == (
        '- name: a\n  tags:\n    - x\n    - "yes"\n    - "1.5"\n    - ""\n'
        '  inner:\n    "n": 1\n    "none": null\n  empty: []\n'
    )


def test_yaml_escapes_what_it_may_not_hold() -> None:
    assert to_yaml(["a: b", 'q"\\', "\x7f\x00", "\u2028", "\U000e0001", "é"]) == (
        '- "a: b"\n- "q\\"\\\\"\n- "\\x7f\\x00"\n- "\\u2028"\n- "\\U000e0001"\n- "é"\n'
    )
