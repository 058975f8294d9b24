"""The `timeout_ms` that admin requests carry."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from ottla.common.errors import ApiError, ErrorCode

T = TypeVar("T")


async def in_time(timeout_ms: int, change: Callable[[], Awaitable[T]]) -> T:
    """The outcome of a change, or REQUEST_TIMED_OUT. A change that has begun goes on; as Kafka's controller, one
    without any time is not begun."""
    if timeout_ms <= 0:
        raise ApiError(ErrorCode.REQUEST_TIMED_OUT)
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            return await change()
    except TimeoutError:
        raise ApiError(ErrorCode.REQUEST_TIMED_OUT, "The change goes on, but did not end in time.") from None
