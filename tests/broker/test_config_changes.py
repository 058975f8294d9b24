"""Operations on a resource's settings, without a broker."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.broker.configs.config_changes import Change, Operation, apply_changes, replace_all
from ottla.common.config import BrokerConfig, TopicConfig
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.steps import to_the_end

LIST, NUMBER = "cleanup.policy", "retention.ms"


def _apply(own: dict[str, str], *changes: tuple[str, Operation, str | None]) -> dict[str, str]:
    topic = TopicConfig(BrokerConfig.load({}), {})
    settings = TopicConfig.definitions()
    changed = [Change(*one) for one in changes]
    return to_the_end(apply_changes(own, changed, settings.get, lambda key: settings[key].text(topic.value(key))))


def test_set_and_delete() -> None:
    assert _apply({"a": "1", "b": "2"}, ("a", Operation.SET, "3"), ("b", Operation.DELETE, None)) == {"a": "3"}
    assert _apply({}, ("a", Operation.DELETE, None)) == {}


def test_a_list_that_is_not_set_is_appended_to_in_its_effective_form() -> None:
    assert _apply({}, (LIST, Operation.APPEND, "compact")) == {LIST: "delete,compact"}
    assert _apply({LIST: "compact"}, (LIST, Operation.APPEND, "delete")) == {LIST: "compact,delete"}


def test_what_is_there_already_is_not_appended_again() -> None:
    assert _apply({LIST: "delete"}, (LIST, Operation.APPEND, "delete,compact")) == {LIST: "delete,compact"}


def test_the_last_item_may_be_subtracted() -> None:
    assert _apply({LIST: "compact"}, (LIST, Operation.SUBTRACT, "compact,delete")) == {LIST: ""}


@given(st.lists(st.sampled_from("abcdef")), st.lists(st.sampled_from("abcdef"), min_size=1))
def test_subtracting_what_was_appended_leaves_none_of_it(before: list[str], items: list[str]) -> None:
    own = {LIST: ",".join(before)}
    appended = _apply(own, (LIST, Operation.APPEND, ",".join(items)))
    left = _apply(appended, (LIST, Operation.SUBTRACT, ",".join(items)))[LIST].split(",")
    assert [item for item in left if item] == [item for item in dict.fromkeys(before) if item not in items]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ([(NUMBER, Operation.APPEND, "1")], ErrorCode.INVALID_CONFIG),
        ([("unknown", Operation.SUBTRACT, "1")], ErrorCode.INVALID_CONFIG),
        ([(NUMBER, Operation.SET, None)], ErrorCode.INVALID_REQUEST),
        ([(LIST, Operation.APPEND, None)], ErrorCode.INVALID_REQUEST),
        ([(NUMBER, Operation.SET, "1"), (NUMBER, Operation.DELETE, None)], ErrorCode.INVALID_REQUEST),
        ([(NUMBER, 9, "1")], ErrorCode.INVALID_REQUEST),
    ],
)
def test_refusals(changes: list[tuple[str, Operation, str | None]], code: ErrorCode) -> None:
    with pytest.raises(ApiError) as caught:
        _apply({}, *changes)
    assert caught.value.code is code


def test_replacing_takes_each_name_once() -> None:
    assert replace_all([("a", "1"), ("b", "2")]) == {"a": "1", "b": "2"}
    for wrong in ([("a", "1"), ("a", "2")], [("a", None)]):
        with pytest.raises(ApiError):
            replace_all(wrong)
