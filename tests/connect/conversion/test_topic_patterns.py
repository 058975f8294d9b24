"""Java's expressions in `topics.regex`, RegexRouter and TopicNameMatches; none may hold a worker up."""

from __future__ import annotations

import sys

import pyarrow as pa
import pytest

from ottla.common import linear_regex
from ottla.connect.api import Column, ConnectorFailure, Records
from ottla.connect.conversion import topic_patterns
from ottla.connect.conversion.java_regex import NotTranslated, replaced_first
from ottla.connect.conversion.predicates import TopicNameMatches
from ottla.connect.conversion.topic_patterns import TopicPattern
from ottla.connect.conversion.transforms.routing import RegexRouter

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


EVIL = "a" * 60 + "!"
# The second is for Python's matcher, in a process of its own.
PATTERNS = ["(a+)+(b)?([^!]*)!?", "(?!z)(a+)(b)?([^!]*)!?"]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_both_matchers_find_the_same_groups(pattern: str) -> None:
    router = TopicPattern(pattern)
    found = router.found("aaé!")
    assert found is not None and found.groups[1:] == ("aa", None, "é")
    assert replaced_first(found, "$1-$2-$3") == "aa--é"
    assert router.found("zz") is None
    # Java's replaceFirst looks anew, and finds less than what matches the whole name.
    found = TopicPattern("a|a+|(?!x)aab").found("aa")
    assert found is not None and (found.before, found.groups, found.after) == ("", ("a",), "a")


def test_an_executor_without_re2_matches_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)
    linear_regex.compile_pattern.cache_clear()
    pattern = TopicPattern("(orders)-?(.*)")
    assert pattern.matching(NAMES) == ["orders", "orders-eu"]
    found = pattern.found("orders-eu")
    assert found is not None and found.groups == ("orders-eu", "orders", "eu")


@pytest.mark.parametrize("pattern", ["(a+)+", "(a+)+(?!b)"])
def test_transforms_and_predicates_are_held_up_by_no_name(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_patterns, "_SECONDS_MAX", 1)
    nothing = Column(None, [None])
    some = Records(pa.array([EVIL]), pa.array([0]), pa.array([0]), nothing, nothing)
    router = RegexRouter({"regex": pattern, "replacement": "other"})
    predicate = TopicNameMatches({"pattern": pattern})
    if "?!" in pattern:
        with pytest.raises(ConnectorFailure, match=r"regex '\(a\+\)\+\(\?!b\)' takes too long"):
            router.columns(some)
        with pytest.raises(ConnectorFailure, match=r"pattern '.*' takes too long"):
            predicate.test(some)
    else:
        routed = router.columns(some)
        assert routed is not None and routed.topics.to_pylist() == [EVIL]
        assert predicate.test(some).to_pylist() == [False]


def test_what_is_no_expression_says_so() -> None:
    for pattern in ("(", "[a-z&&[^b]]", "(?=x"):
        with pytest.raises(NotTranslated):
            TopicPattern(pattern)
