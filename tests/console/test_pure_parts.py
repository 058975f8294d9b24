"""What needs neither a cluster nor a browser: plans, rights, masks, charts, numbers, the gate."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.requests import Request

from ottla.client.lookup import ClusterReader
from ottla.common.errors import OttlaError
from ottla.common.ids import TopicPartition
from ottla.common.where import Record, compile_condition
from ottla.console.cluster.asking import Asking
from ottla.console.cluster.collecting import with_rates
from ottla.console.cluster.health import BAD, NOTE, WARNING, findings, verdict
from ottla.console.cluster.history import History
from ottla.console.cluster.judging import look_of
from ottla.console.cluster.metrics import Metrics, Scrape, numbers_of
from ottla.console.cluster.offset_plan import Target, as_text, from_text, parse_target, plan
from ottla.console.cluster.request_times import ApiLook, between, percentile, read_times
from ottla.console.cluster.snapshot import Broker, Group, Member, Partition, Snapshot, Topic
from ottla.console.connect_client import shown_setting
from ottla.console.pages.schemas import differences
from ottla.console.records.columns import BinaryColumn, candidates
from ottla.console.records.masking import HIDDEN, Masks, masked
from ottla.console.records.query import parse_query
from ottla.console.records.showing import as_line, read
from ottla.console.web import charts, requests, words
from ottla.console.web.gate import Gate
from ottla.console.web.rights import ADMIN, EDITOR, NEEDED, OF_THE_CLUSTER, VIEWER, why_not
from ottla.console.web.sessions import LoginLimit, Sessions
from ottla.monitoring.burrow import Status, Verdict, judge_group
from ottla.monitoring.monitor import GroupReport, PartitionReport

WHERE = TopicPartition("orders", 0)


# --- plans of offsets


@pytest.mark.parametrize(
    ("kind", "text", "after"),
    [
        ("start", "", 10),
        ("end", "", 100),
        ("offset", "42", 42),
        ("offset", "5000", 100),
        ("shift", "-7", 43),
        ("shift", "+9999", 100),
        ("time", "2026-01-01", 77),
    ],
)
def test_a_plan_says_where_each_offset_goes_and_stays_inside_the_log(kind: str, text: str, after: int) -> None:
    moves = plan(parse_target(kind, text), {WHERE: 50}, {WHERE: (10, 100)}, {WHERE: 77})
    (move,) = moves
    assert (move.before, move.after, move.change, move.lag_after) == (50, after, after - 50, 100 - after)


def test_a_plan_leaves_out_what_stays_as_it_is() -> None:
    assert plan(Target("offset", 50), {WHERE: 50}, {WHERE: (10, 100)}, {}) == []


def test_a_time_that_nothing_is_as_new_as_means_the_end() -> None:
    (move,) = plan(Target("time", 1), {}, {WHERE: (10, 100)}, {WHERE: -1})
    assert (move.before, move.after) == (None, 100)


@pytest.mark.parametrize(("kind", "text"), [("offset", "x"), ("shift", "5"), ("time", "soon"), ("nowhere", "")])
def test_a_place_that_is_none_is_refused(kind: str, text: str) -> None:
    with pytest.raises(OttlaError):
        parse_target(kind, text)


def test_a_step_needs_something_to_count_from() -> None:
    with pytest.raises(OttlaError, match="no offset for orders-0"):
        plan(Target("shift", 5), {}, {WHERE: (0, 10)}, {})


def test_a_plan_comes_back_from_its_form_as_it_was() -> None:
    odd = TopicPartition("a:b|c", 3)
    moves = plan(Target("start"), {WHERE: 50}, {WHERE: (10, 100), odd: (5, 9)}, {})
    assert from_text(as_text(moves)) == {WHERE: (10, 50), odd: (5, None)}
    with pytest.raises(OttlaError):
        from_text(["1:x:2:t"])


# --- rights


def test_each_change_takes_a_right_and_a_refusal_says_which() -> None:
    for action, needed in NEEDED.items():
        for role in (VIEWER, EDITOR, ADMIN):
            reason = why_not(action, role, is_read_only=False, is_cluster_user=False)
            allowed = (VIEWER, EDITOR, ADMIN).index(role) >= (VIEWER, EDITOR, ADMIN).index(needed)
            assert (reason is None) == allowed
            assert reason is None or (needed in reason and action in reason)


def test_nobody_changes_anything_through_a_console_that_is_read_only() -> None:
    for action in NEEDED:
        reason = why_not(action, ADMIN, is_read_only=True, is_cluster_user=True)
        assert reason is not None and "read-only" in reason


def test_what_is_the_clusters_it_decides_itself_about_its_users() -> None:
    for action in NEEDED:
        reason = why_not(action, VIEWER, is_read_only=False, is_cluster_user=True)
        assert (reason is None) == (action in OF_THE_CLUSTER)


# --- masks


def record(value: object, **more: object) -> Record:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    given = {"key": b"k", "headers": [("auth", b"secret"), ("other", b"x")], **more}
    return Record("payments", 0, 0, 0, value=data, **given)  # type: ignore[arg-type]


def test_masked_fields_are_hidden_wherever_they_are() -> None:
    paths = Masks.parse(["pay*:card.number,headers.auth"]).of("payments")
    seen = masked(record({"card": {"number": "4111", "kind": "visa"}, "n": 1}), paths)
    assert seen.json("value") == {"card": {"number": HIDDEN, "kind": "visa"}, "n": 1}
    assert seen.headers == [("auth", HIDDEN.encode()), ("other", b"x")]
    in_list = masked(record([{"card": [{"number": "4111"}]}, {"card": "whole"}]), paths)
    assert b"4111" not in (in_list.value or b"") and b"whole" not in (in_list.value or b"")


@pytest.mark.parametrize(
    "value", [b"\x00\x01card 4111", b"plain 4111", b'"4111"', b"4111", b'{"card": {"number": "4111"']
)
def test_a_value_whose_fields_cannot_be_found_is_hidden_as_a_whole(value: bytes) -> None:
    assert masked(record(value), Masks.parse(["payments:card.number"]).of("payments")).value == HIDDEN.encode()


def test_other_topics_are_not_masked_and_keys_can_be() -> None:
    masks = Masks.parse(["payments:key", "*:headers"])
    assert masks.of("orders") == (("headers",),)
    seen = masked(record({"a": 1}), masks.of("payments"))
    assert seen.key == HIDDEN.encode() and all(value == HIDDEN.encode() for _, value in seen.headers)


def test_names_with_dots_are_masked_as_well() -> None:
    paths = Masks.parse(["*:card.number,headers.user.token"]).of("payments")
    seen = masked(record({"card.number": "4111", "a": 1}, headers=[("user.token", b"s"), ("user", b"x")]), paths)
    assert seen.json("value") == {"card.number": HIDDEN, "a": 1}
    assert seen.headers == [("user.token", HIDDEN.encode()), ("user", b"x")]


def test_no_depth_of_a_record_is_too_much() -> None:
    paths = Masks.parse(["*:a.b"]).of("payments")
    for depth in (500, 900, 960, 990, 5_000, 100_000):
        for value in (b"[" * depth + b"]" * depth, b'{"a":' * depth + b"1" + b"}" * depth):
            read(value, "auto")
            as_line(record(value))
            masked(record(value), paths)


@pytest.mark.parametrize("text", ["", "payments", "payments:", ":field"])
def test_a_mask_without_topic_or_field_is_refused(text: str) -> None:
    with pytest.raises(OttlaError, match="--mask"):
        Masks.parse([text])


@settings(deadline=None)
@given(st.recursive(st.none() | st.text() | st.integers(), lambda c: st.lists(c) | st.dictionaries(st.text(), c)))
def test_masking_never_fails_and_never_shows(tree: object) -> None:
    secret = "S3CR3T-VALUE"
    seen = masked(record({"a": tree, "card": {"number": secret}}), Masks.parse(["*:card.number"]).of("payments"))
    assert secret.encode() not in (seen.value or b"")


# --- what a condition takes at least


@pytest.mark.parametrize(
    ("text", "needs"),
    [
        ('value.user == "ada"', {(b"user", True), (b"ada", True)}),
        ('value.user.name == "ada" and value.n > 5', {(b"user", True), (b"name", True), (b"ada", True), (b"n", True)}),
        ('value contains "x"', {(b"x", False)}),
        ('value.n == "5"', {(b"n", True)}),  # 5 equals its text
        ("exists(value.error)", {(b"error", True)}),
        ("value.paid", {(b"paid", True)}),
        ('not value.user == "ada"', set()),
        ('value.a == 1 or value.b == "x"', set()),
        ("value.a == null", set()),
        ('value.a != "x"', set()),
        ('value.a =~ "x"', set()),
        ('headers.a == "x"', set()),
    ],
)
def test_bytes_that_a_condition_needs(text: str, needs: set[tuple[bytes, bool]]) -> None:
    assert {(need.literal, need.is_json) for need in compile_condition(text).needs} == needs


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["ada", "a\\b", "5", "é", ""]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["user", "n", "é", "a"]), inner, max_size=3)
    ),
    max_leaves=8,
)
_TESTS = st.sampled_from(
    [
        'value.user == "ada"',
        'value.user contains "ada"',
        'value contains "ada"',
        'value.user == "5"',
        "value.n > 3",
        'exists(value["é"])',
        'value["é"] == "é"',
        "value.a and value.n != 2",
        "len(value.user) == 3",
        '"ada" in value.user',
        'key == "k" and value.n == 5',
    ]
)


@settings(deadline=None)
@given(_JSON, _TESTS, st.booleans())
def test_no_record_that_a_condition_holds_for_lacks_the_bytes_it_needs(
    tree: object, text: str, ascii_only: bool
) -> None:
    data = json.dumps(tree, ensure_ascii=ascii_only).encode()
    condition = compile_condition(text)
    if condition.holds(record(data)):
        for need in condition.needs:
            held = b"k" if need.column == "key" else data
            assert need.literal in held or (need.is_json and (b"\\" in held or b"\0" in held))


@settings(deadline=None)
@given(st.lists(st.none() | st.binary(max_size=6), max_size=40), st.binary(min_size=1, max_size=3), st.integers(0, 5))
def test_rows_that_have_some_bytes_are_found_in_the_buffer_of_a_column(
    values: list[bytes | None], literal: bytes, first: int
) -> None:
    values += [b"other"] * 100  # so that those are few
    column = pa.array(values, pa.binary())[first:]
    wanted = {row for row, value in enumerate(values[first:]) if value is not None and literal in value}
    assert BinaryColumn(column).rows_with(literal) in (wanted, None)
    if len(wanted) < 20:
        assert BinaryColumn(column).rows_with(literal) == wanted


def test_bytes_that_most_rows_have_tell_nothing() -> None:
    many = pa.array([b'{"customer": %d}' % n for n in range(100)], pa.binary())
    assert BinaryColumn(many).rows_with(b"customer") is None
    needs = compile_condition('value.customer == "x7"').needs
    assert candidates((many, many), needs, None) == []
    assert candidates((many, many), needs[:1], None) is None
    assert BinaryColumn(pa.array([None, None], pa.binary())).rows_with(b"x") == set()


# --- queries


def test_a_query_is_read_from_an_address() -> None:
    query = parse_query("t", {"from": "offset", "at": "7", "partition": "2,0", "limit": "100", "where": " key == 'x' "})
    assert (query.origin, query.offset, query.partitions, query.limit) == ("offset", 7, (0, 2), 100)
    assert not query.is_backwards and query.where == "key == 'x'"
    assert parse_query("t", {}).is_backwards
    assert parse_query("t", {"limit": "999999999999999"}).limit == 50
    assert parse_query("t", {"limit": "99999"}).limit == 500


@pytest.mark.parametrize(
    "given_",
    [
        {"from": "offset", "at": "-1"},
        {"from": "time", "at": "soon"},
        {"from": "moon"},
        {"partition": "a"},
        {"from": "next"},
    ],
)
def test_a_query_that_cannot_be_read_is_refused(given_: dict[str, str]) -> None:
    with pytest.raises(OttlaError):
        parse_query("t", given_)


# --- bytes as people read them


@pytest.mark.parametrize(
    ("data", "how", "kind"),
    [
        (None, "auto", "null"),
        (b'{"a": 1}', "auto", "json"),
        (b"42", "auto", "text"),
        (b"42", "json", "json"),
        (b"not json", "json", "text"),
        (b"plain", "auto", "text"),
        (b"\x00\x01", "auto", "hex"),
        (b"\xff\xfe", "text", "text"),
        (b'{"a": 1}', "hex", "hex"),
        (b"", "auto", "text"),
    ],
)
def test_bytes_are_shown_as_what_they_are(data: bytes | None, how: str, kind: str) -> None:
    assert read(data, how).kind == kind


@settings(deadline=None)
@given(st.binary(max_size=300), st.sampled_from(["auto", "json", "text", "hex"]))
def test_any_bytes_can_be_shown(data: bytes, how: str) -> None:
    seen = read(data, how)
    assert seen.size == len(data) and seen.text.encode(errors="replace") is not None


@pytest.mark.parametrize(
    "number", ["12345678901234567.89", "0.10", "1E400", "-0.0", "1e5", "0.1000000000000000055511151231257827", "7"]
)
def test_numbers_are_shown_and_downloaded_as_they_were_written(number: str) -> None:
    """They came out as what Python's floats make of them: another amount."""
    value = f'{{"amount": {number}, "text": "{number}"}}'
    seen = read(value.encode())
    assert seen.preview == value and f'"amount": {number},' in seen.text
    assert f'"value": {value}' in as_line(record(value.encode())).decode()
    assert masked(record(value.encode()), (("value", "secret"),)).value == value.encode()


# --- charts


def test_a_chart_is_text_that_cannot_break_out_and_gaps_stay_gaps() -> None:
    points = [(0.0, 1.0), (1.0, 2.0), (2.0, None), (3.0, 1.0), (4.0, 3.0)]
    svg = str(charts.chart(points, lambda value: f"<{value}>", '"><script>'))
    assert svg.count('class="line s0"') == 2
    assert "<script" not in svg and "&lt;0.0&gt;" in svg
    assert "style=" not in svg


def test_a_chart_without_two_points_says_so() -> None:
    assert "Not enough" in charts.chart([(0.0, 1.0)], str, "x")
    assert charts.spark([], "x") == ""


def test_an_axis_has_marks_that_are_easily_read() -> None:
    def marks(most: float, unit: Callable[[float], str], base: int) -> list[str]:
        svg = str(charts.chart([(0.0, 0.0), (10.0, most)], unit, "x", base))
        return re.findall(r'text-anchor="end">([^<:]+)</text>', svg)

    assert marks(1, words.short, 1) == marks(0, words.short, 1) == ["0", "1"]
    assert marks(3, words.short, 1) == ["0", "5"] and marks(8, words.short, 1) == ["0", "5", "10"]
    assert marks(840, words.seconds, 60) == ["0 ms", "10 min", "20 min"]
    assert marks(3_700, words.seconds, 60) == ["0 ms", "1 h", "2 h"]
    assert marks(200_000, words.seconds, 60) == ["0 ms", "2 d", "4 d"]


def test_a_chart_says_its_last_least_and_most() -> None:
    svg = str(charts.chart([(0.0, 5.0), (1.0, 9.0), (2.0, 7.0)], words.short, "x"))
    assert "last <strong>7</strong>" in svg and "least <strong>5</strong>" in svg and "most <strong>9</strong>" in svg


@settings(deadline=None)
@given(st.floats(1e-3, 1e15), st.sampled_from([10, 60, 1024]))
def test_the_top_of_a_chart_is_near_what_it_shows(most: float, base: int) -> None:
    top = charts.nice_top(most, base)
    assert most * 0.998 <= top <= most * 10.01


def test_the_history_is_bounded_and_forgets_what_is_gone() -> None:
    history = History(points_max=10)
    for at in range(30):
        history.add(at, {"here": at, **({"gone": 1.0} if at < 5 else {})})
    assert [at for at, _ in history.of("here")] == list(range(20, 30))
    assert history.of("gone") == []
    history.add(30, {"here": None})
    assert history.of("here")[-1] == (30, None)


# --- words


def test_numbers_are_read_easily() -> None:
    assert [words.short(n) for n in (None, 0, 999, 9_999, 12_345, 2.5e6)] == [
        "–",
        "0",
        "999",
        "9,999",
        "12.3 k",
        "2.5 M",
    ]
    assert [words.duration(ms) for ms in (950, 1_500, 121_000, 7_200_000)] == ["950 ms", "1.5 s", "2 min", "2 h"]
    assert [words.milliseconds(ms) for ms in (0.001, 0.25, 12.5, 517.2, 1_000)] == [
        *("0 ms", "0.25 ms", "12.5 ms", "517 ms", "1 s")
    ]
    assert [words.size(n) for n in (None, 0, 1023, 1536, 5 * 1024**3)] == ["–", "0 B", "1023 B", "1.5 KiB", "5 GiB"]
    assert words.setting("retention.ms", "604800000") == "7 d" and words.setting("retention.bytes", "-1") == "no limit"
    assert words.moment(-1) == "–" and words.moment(2**62) == str(2**62)


# --- health


def snapshot(**changes: object) -> Snapshot:
    partition = Partition(0, 1, (1, 2), (1, 2), 0, 100)
    base: dict[str, object] = {
        "at_s": 1.0,
        "took_s": 0.0,
        "cluster_id": "c",
        "controller": 1,
        "brokers": {1: Broker(1, "h", 1, None, True), 2: Broker(2, "h", 2, None, False)},
        "topics": {"orders": Topic("orders", False, (partition,), min_isr=2)},
        "groups": {},
    }
    return Snapshot(**{**base, **changes})  # type: ignore[arg-type]


def test_a_healthy_cluster_has_no_findings() -> None:
    assert findings(snapshot(), {}) == [] and verdict([]) == "ok"


def test_each_illness_is_told_with_what_to_do() -> None:
    below = Topic("orders", False, (Partition(0, 1, (1, 3), (1,)),), min_isr=2)
    leaderless = Topic("gone", False, (Partition(0, -1, (3,), ()),))
    astray = Topic("astray", False, (Partition(0, 2, (1, 2), (1, 2)),))
    behind = Group("late", "Empty", "classic", "consumer", 1, (), {WHERE: 0}, {WHERE: 5_000})
    stuck = Group(
        "stuck",
        "Stable",
        "classic",
        "consumer",
        1,
        (Member("m", "c", "h", None, ()),),
        {},
        {WHERE: 5_000},
        commits_per_s=0.0,
    )
    found = findings(
        snapshot(
            controller=-1,
            topics={"orders": below, "gone": leaderless, "astray": astray},
            groups={"late": behind, "stuck": stuck},
        ),
        {},
    )
    text = " ".join(one.what for one in found)
    for word in ("no controller", "Broker 3 is gone", "orders-0", "gone-0", "Group late", "Group stuck", "preferred"):
        assert word in text
    assert all(one.advice for one in found)
    severities = [one.severity for one in found]
    assert severities == sorted(severities, key=(BAD, WARNING, NOTE).index) and verdict(found) == BAD


def judged(*partitions: tuple[Status, int]) -> GroupReport:
    reports = [
        PartitionReport("orders", number, 0, lag, None, Verdict(status, lag, None, "why"))
        for number, (status, lag) in enumerate(partitions)
    ]
    return GroupReport("billing", judge_group(one for one, _ in partitions), "Stable", 1, 0, None, tuple(reports))


@pytest.mark.parametrize(
    ("members", "partitions", "said"),
    [
        # The others move: commits of the group say nothing of one that stands still.
        (1, [(Status.OK, 0), (Status.STALL, 3)], "stands still in 1 partition (orders-1), 3 records behind"),
        (1, [(Status.STALL, 2), (Status.STOP, 1)], "stands still in 2 partitions (orders-0, orders-1)"),
        (1, [(Status.REWIND, 7), (Status.OK, 0)], "went back in 1 partition (orders-0)"),
        (0, [(Status.STOP, 5_000)], "no members and is 5,000 records behind in 1 partition (orders-0)"),
        (0, [(Status.STOP, 5)], None),
        (1, [(Status.WARN, 9_000)], None),
    ],
)
def test_a_group_that_stands_still_in_a_partition_is_told(
    members: int, partitions: list[tuple[Status, int]], said: str | None
) -> None:
    group = Group("billing", "Stable", "classic", "consumer", 1, (Member("m", "c", "h", None, ()),) * members)
    found = findings(snapshot(groups={"billing": replace(group, commits_per_s=5.0)}), {"billing": judged(*partitions)})
    assert [said in one.what for one in found if said] == [True] * bool(said) and len(found) == bool(said)


class SilentBrokers:
    def broker(self, node_id: int) -> object:
        raise OSError("it is silent")

    def close(self) -> None:
        pass


def test_groups_of_a_coordinator_that_does_not_answer_are_still_known() -> None:
    """They vanished, and their pages said that they were deleted."""
    known = snapshot(groups={name: Group(name, "Stable", "classic", "consumer", at) for name, at in GROUPS})
    asking = Asking(cast(ClusterReader, SilentBrokers()))
    groups = asking._groups([1], {}, known)
    assert list(groups) == ["billing", "of-one-that-is-gone"] and "does not answer" in str(groups["billing"].problem)
    assert look_of(replace(known, missing=asking.missing)).troubles == ["groups of broker 1: it is silent"]


GROUPS = (("billing", 1), ("of-one-that-is-gone", 2))


@pytest.mark.parametrize(("leader", "names"), [(1, []), (-1, ["of-one-that-is-gone"])])
def test_groups_of_a_coordinator_that_is_gone_are_known_until_another_has_them(leader: int, names: list[str]) -> None:
    class Brokers:
        def broker(self, node_id: int) -> object:
            return SimpleNamespace(call=lambda request, *_: SimpleNamespace(error_code=0, groups=[]), version_of=len)

    known = snapshot(groups={name: Group(name, "Stable", "classic", "consumer", at) for name, at in GROUPS})
    offsets = Topic("__consumer_offsets", True, (Partition(0, leader, (2,), ()),))
    groups = Asking(cast(ClusterReader, Brokers()))._groups([1], {"__consumer_offsets": offsets}, known)
    assert list(groups) == names


def test_of_a_moment_no_rate_is_told_and_nothing_of_it_is_lost() -> None:
    """After each change it looks at once; plots had peaks there that never were."""

    def at(at_s: float, end: int) -> Snapshot:
        topic = Topic("orders", False, (Partition(0, 1, (1,), (1,), 0, end),))
        group = Group("billing", "Stable", "classic", "consumer", 1, offsets={WHERE: end})
        return snapshot(at_s=at_s, topics={"orders": topic}, groups={"billing": group})

    def rates(seen: Snapshot) -> tuple[float | None, float | None]:
        return seen.topics["orders"].records_per_s, seen.groups["billing"].commits_per_s

    shown, rated = with_rates(None, None, at(10.0, 0))
    assert rates(shown) == (None, None)
    shown, rated = with_rates(rated, shown, at(12.0, 20))
    assert rates(shown) == (10.0, 10.0)
    shown, rated = with_rates(rated, shown, at(12.01, 25))
    assert rates(shown) == (10.0, 10.0) and shown.topics["orders"].records == 25
    shown, rated = with_rates(rated, shown, at(14.0, 60))
    assert rates(shown) == (20.0, 20.0)


# --- the gate, sessions, logins


@pytest.mark.parametrize(
    ("host", "known"),
    [
        ("127.0.0.1:8080", True),
        ("localhost", True),
        ("[::1]:8080", True),
        ("console.example.com", True),
        ("CONSOLE.example.com:8080", True),
        ("evil.example.com", False),
        ("console.example.com.evil.org", False),
        ("", False),
        ("[::1", False),
        ("localhost.evil.org", False),
    ],
)
def test_only_names_that_are_ours_are_answered(host: str, known: bool) -> None:
    gate = Gate(None, ("console.example.com",), is_secure=False)  # type: ignore[arg-type]
    assert gate.is_known(host) is known


def test_strangers_are_forgotten_before_users() -> None:
    sessions = Sessions()
    user = sessions.begin()
    user.user = "anna"
    from ottla.console.web import sessions as module

    for _ in range(module.SESSIONS_MAX + 10):
        sessions.begin()
    assert sessions.find(user.id) is user
    sessions.end(user)
    assert sessions.find(user.id) is None and sessions.find(None) is None


def test_after_five_wrong_passwords_there_is_a_pause() -> None:
    limit = LoginLimit()
    for _ in range(4):
        assert limit.attempt("user anna", "address x") == 0
    assert limit.attempt("user anna") == 0
    assert limit.attempt("user anna") > 200 and limit.attempt("user bob") == 0
    limit.succeeded("user anna")
    assert limit.attempt("user anna") == 0


def test_guesses_that_come_at_the_same_time_are_five_as_well() -> None:
    limit, together = LoginLimit(), threading.Barrier(20)

    def guess(_: int) -> bool:
        together.wait(60)
        return limit.attempt("user anna", "address x") == 0

    with ThreadPoolExecutor(20) as guessers:
        assert sum(guessers.map(guess, range(20))) == 5


def test_a_guess_that_nobody_could_judge_is_not_counted() -> None:
    limit = LoginLimit()
    for _ in range(20):
        assert limit.attempt("user anna", "address x") == 0
        limit.unjudged("user anna", "address x")


def test_names_that_failed_are_remembered_in_little_room() -> None:
    limit = LoginLimit()
    for _ in range(5):
        limit.attempt("user " + "x" * 1_000_000)
    assert limit.attempt("user " + "x" * 1_000_000) > 200 and limit.attempt("user " + "x" * 999_999) == 0
    assert all(len(key) < 100 for key in limit._failures)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("value.converter.basic.auth.user.info", "me:S3CRET"),
        ("ssl.keystore.key", "-----BEGIN PRIVATE KEY----- S3CRET"),
        ("ssl.key.passphrase", "S3CRET"),
        ("azure.eventhubs.sas.keyvalue", "S3CRET"),
        ("azure.storage.connection.string", "AccountKey=S3CRET"),
        ("connection.uri", "mongodb+srv://me:S3CRET@mongo.example/db"),
        ("connection.url", "jdbc:postgresql://db/orders?user=me&password=S3CRET&ssl=true"),
        ("connection.url", "jdbc:sqlserver://db;user=me;Password=S3CRET;encrypt=true"),
    ],
)
def test_secrets_of_connectors_are_not_shown(name: str, value: str) -> None:
    assert "S3CRET" not in shown_setting(name, value) and shown_setting(name, value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("key.converter", "StringConverter"),
        ("connection.url", "jdbc:postgresql://db:5432/orders?ssl=true"),
        ("connection.password", "${file:/run/secrets:db}"),
    ],
)
def test_settings_of_connectors_that_are_no_secret_are_shown(name: str, value: str) -> None:
    assert shown_setting(name, value) == value


def scraped(at_s: float, bytes_in: int, *lines: str) -> Scrape:
    text = (
        "# HELP x\nkafka_server_replicamanager_underreplicatedpartitions 3.0\n"
        f'kafka_server_brokertopicmetrics_bytesin_total{{topic="a"}} {bytes_in}\n'
        'kafka_server_brokertopicmetrics_bytesin_total{topic="b"} 5\n' + "\n".join(lines)
    )
    return Scrape(at_s, numbers_of(text), read_times(text))


def buckets(api: str, *held: int) -> list[str]:
    limits = ("1.0", "10.0", "+Inf")
    name = "kafka_network_requestmetrics_totaltimems"
    rows = [f'{name}_bucket{{request="{api}",le="{le}"}} {n}' for le, n in zip(limits, held, strict=True)]
    return [*rows, f'{name}_count{{request="{api}"}} {held[-1]}']


def test_metrics_become_rates_and_percentiles_of_what_happened_between_two_looks() -> None:
    metrics = Metrics(("http://x",), 5.0)
    metrics.take({"http://x": scraped(10.0, 10, *buckets("Produce", 5, 5, 5))})
    assert metrics.rows[0].bytes_in_per_s is None and metrics.rows[0].under_replicated == 3 and metrics.apis == []
    metrics.take({"http://x": scraped(20.0, 1010, *buckets("Produce", 5, 105, 105), *buckets("Fetch", 50, 50, 50))})
    assert metrics.rows[0].bytes_in_per_s == 100 and metrics.rows[0].loop_lag_ms is None
    produce, fetch = metrics.apis
    assert (produce.api, produce.per_s, fetch.api, fetch.per_s) == ("Produce", 10, "Fetch", 5)
    assert produce.percentiles[0.5] == pytest.approx(5.5) and fetch.percentiles[0.99] == pytest.approx(0.99)
    metrics.take({"http://x": scraped(30.0, 7, *buckets("Produce", 1, 1, 1))})  # the broker began anew
    assert metrics.rows[0].bytes_in_per_s is None and metrics.apis == []
    metrics.take({"http://x": Scrape(40.0, problem="refused")})
    assert metrics.rows[0].problem == "refused"
    assert next(value for _, value in metrics.history.of("p50:Produce")) == pytest.approx(5.5)


def test_percentiles_of_the_jmx_exporter_are_taken_as_they_are() -> None:
    name = "kafka_network_requestmetrics_totaltimems"

    def look(count: int) -> dict[str, dict[str, ApiLook]]:
        text = (
            f'{name}{{request="Fetch",quantile="0.99",}} 12.5\n{name}_count{{request="Fetch",}} {count}\n{name}{{}} x'
        )
        return {"a": read_times(text), "b": read_times(text.replace("12.5", "20"))}

    (fetch,) = between(look(5), look(10), 5.0)
    assert fetch.per_s == 2 and fetch.percentiles == {0.5: None, 0.95: None, 0.99: 20}
    assert between(look(5), look(5), 5.0)[0].percentiles[0.99] is None


@given(st.lists(st.integers(0, 50), min_size=1, max_size=8), st.floats(0, 1))
def test_a_percentile_lies_between_the_limits_of_its_buckets(held: list[int], share: float) -> None:
    sums = [sum(held[: at + 1]) for at in range(len(held))]
    found = percentile({float(at + 1): float(count) for at, count in enumerate(sums)}, share)
    assert (found is None) == (sums[-1] == 0)
    if found is not None:
        assert 0 <= found <= len(held)
        first = next(at for at, count in enumerate(sums) if count >= share * sums[-1])
        assert first <= found <= first + 1


def test_differences_of_schemas_are_line_by_line() -> None:
    assert differences("a\nb\nc", "a\nx\nc") == [("", "a"), ("-", "b"), ("+", "x"), ("", "c")]
    assert differences("a", "a") == []


async def test_a_form_that_never_arrives_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "FORM_S_MAX", 0.05)
    pieces = [{"type": "http.request", "body": b"name=", "more_body": True}]

    async def receive() -> Any:
        return pieces.pop() if pieces else await asyncio.get_running_loop().create_future()

    with pytest.raises(OttlaError, match="did not arrive"):
        await requests.read_form(Request({"type": "http", "method": "POST", "headers": []}, receive))
