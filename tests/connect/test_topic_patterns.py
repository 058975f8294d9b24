"""Which topics `topics.regex` means: Java's expressions, and none of them may hold a worker up for ever."""

from __future__ import annotations

import pytest

from ottla.connect import topic_patterns
from ottla.connect.api import ConnectorFailure
from ottla.connect.conversion.java_regex import NotTranslated
from ottla.connect.topic_patterns import TopicPattern

NAMES = ["orders", "orders-eu", "Orders_9", "internal", "payments"]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("orders.*", ["orders", "orders-eu"]),
        ("(?<what>orders|payments)", ["orders", "payments"]),
        (r"\p{Alpha}+", ["orders", "internal", "payments"]),
        (r"\QOrders_\E\d", ["Orders_9"]),
        ("(?i)orders.*", ["orders", "orders-eu", "Orders_9"]),
        ("order", []),
        # Linear matchers know neither of these.
        ("(?!internal).*", ["orders", "orders-eu", "Orders_9", "payments"]),
        (r"(.).*\1", []),
    ],
)
def test_it_matches_whole_names_as_java_does(pattern: str, found: list[str]) -> None:
    assert TopicPattern(pattern).matching(NAMES) == found


def test_an_expression_that_goes_back_without_end_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    evil = ["a" * 60 + "!"]
    assert TopicPattern("(a+)+").matching(evil) == []
    monkeypatch.setattr(topic_patterns, "_SECONDS_MAX", 1)
    with pytest.raises(ConnectorFailure, match=r"topics\.regex '\(a\+\)\+\(\?!b\)' takes too long"):
        TopicPattern("(a+)+(?!b)").matching(evil)


def test_what_is_no_expression_says_so() -> None:
    for pattern in ("(", "[a-z&&[^b]]", "(?=x"):
        with pytest.raises(NotTranslated):
            TopicPattern(pattern)
