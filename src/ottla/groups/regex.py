"""Subscription by regular expression. Topic names are ASCII; the whole name has to match."""

from __future__ import annotations

from collections.abc import Iterable

from ottla.common.errors import ApiError, ErrorCode
from ottla.common.linear_regex import BadPattern, compile_pattern


def check_regex(regex: str) -> None:
    """Raises INVALID_REGULAR_EXPRESSION."""
    try:
        compile_pattern(regex)
    except BadPattern as error:
        raise ApiError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {error}.",
        ) from None


def matching_topics(regex: str, topics: Iterable[str]) -> tuple[str, ...]:
    """In sorted order."""
    pattern = compile_pattern(regex)
    return tuple(sorted(name for name in topics if pattern.fullmatch(name.encode()) is not None))
