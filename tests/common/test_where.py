"""The language of --where: what it can say, and that it cannot do anything else."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.common.where import Record, WhereError, compile_where

ORDER = {"total": 120.5, "user": {"id": 7, "name": "Ada"}, "tags": ["a", "b"], "items": [{"sku": "x"}], "paid": True}


def record(**changes: object) -> Record:
    base = {
        "topic": "orders",
        "partition": 2,
        "offset": 41,
        "timestamp": 1_700_000_000_000,
        "key": b"user-7",
        "value": json.dumps(ORDER).encode(),
        "headers": [("region", b"eu"), ("retry", b"3"), ("region", b"us"), ("empty", None), ("trace-id", b"t")],
    }
    return Record(**{**base, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    [
        "value.total > 100",
        "value.total >= 120.5 and value.total < 121",
        'key == "user-7"',
        "key == 'user-7'",
        'key =~ "^user-\\d+$"',
        'key !~ "^admin"',
        "partition == 2 && offset in [40, 41, 42]",
        "not (partition == 1 || offset < 41)",
        "!exists(value.error)",
        "exists(value.user.id)",
        "value.user.name == 'Ada'",
        'lower(value.user.name) == "ada"',
        'value.tags contains "b"',
        '"a" in value.tags',
        'value.items[0].sku == "x"',
        "value.items[-1]['sku'] == 'x'",
        "value.paid",
        "value.paid == true",
        "value.nothing == null",
        'value contains "total"',
        "len(value.tags) == 2 and len(key) == 6",
        'headers.region == "us"',  # the last one of a name counts
        "headers.retry > 2",  # text that is a number meets a number
        "headers.retry == 3",
        'headers["trace-id"] == "t" and headers.trace-id == "t"',
        "headers.empty == null and headers.absent == null",
        'topic =~ "^ord"',
        "timestamp >= @2023-11-01 and timestamp < @1700000001000",
        "timestamp < @-1h",
        "value.total > 1e2",
        "not not (partition == 2)",
        "partition == 2 or value.no.such[3].thing > 5",
    ],
)
def test_conditions_that_hold(text: str) -> None:
    assert compile_where(text)(record())


@pytest.mark.parametrize(
    "text",
    [
        "value.total > 121",
        'value.total == "abc"',
        "value.user > 3",
        "value.nothing < 5",
        "value.nothing > 5",
        "value.paid == 1",
        "key.field == 1",  # a key that is not JSON has no fields
        "partition == 2 and offset == 0",
        'value.tags contains "c"',
        '"x" in key.y',
        "exists(headers.absent)",
        "value.nothing",
        "false",
    ],
)
def test_conditions_that_do_not_hold(text: str) -> None:
    assert not compile_where(text)(record())


def test_null_keys_and_values_and_broken_json_are_null() -> None:
    empty = record(key=None, value=None, headers=())
    assert compile_where("key == null and value == null and value.x == null")(empty)
    assert not compile_where("value.x == 1")(record(value=b"{broken"))
    assert not compile_where("value.x == 1")(record(value=b"[" * 100_000))
    assert compile_where('value =~ "caf"')(record(value=b"caf\xe9"))


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("", "expected a field or a value at the end"),
        ("value.total >", "expected a field or a value"),
        ("total > 5", "use key, value, headers"),
        ("value.total > 5 5", "expected 'and', 'or' or the end"),
        ("(value.total > 5", "expected ')'"),
        ("value[", "expected an index"),
        ("value.", "expected a name"),
        ("value =~ 5", "regular expression in quotes"),
        ('value =~ "("', "not a regular expression"),
        ("value ; 5", "cannot read"),
        ("headers == 1", "name one header"),
        ("partition.x == 1", "no fields of its own"),
        ("timestamp > @yesterday", "not a time"),
        ("__import__('os').system('id')", "no field '__import__'"),
        ("(" * 5000 + "true" + ")" * 5000, "nested deeper"),
        ("not " * 5000 + "true", "nested deeper"),
        ("[" * 5000, "nested deeper"),
        ("9" * 5000, "too long"),
        ("value.items[" + "9" * 5000 + "] == 1", "too long"),
    ],
)
def test_a_mistake_is_explained(text: str, hint: str) -> None:
    with pytest.raises(WhereError) as error:
        compile_where(text)
    assert hint in str(str(error.value))


@settings(deadline=None)
@given(st.text(max_size=60) | st.text(alphabet="value.key()[]<>=!~&|\"' 05@andornot,-", max_size=60))
def test_any_text_is_a_condition_or_a_usage_error(text: str) -> None:
    try:
        holds = compile_where(text)
    except WhereError:
        return
    assert holds(record()) in (True, False)


def test_json_is_read_once_for_many_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    condition = compile_where(" or ".join(f"value.f{n} == 1" for n in range(200)))
    wide, parse, parsed = record(value=b'{"blob": "x"}'), json.loads, []
    monkeypatch.setattr(json, "loads", lambda text: parsed.append(text) or parse(text))
    assert not condition(wide)
    assert len(parsed) == 1
