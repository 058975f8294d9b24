"""Processing guarantees, by Kafka Streams' names: what becomes of results when a batch is broken off."""

from __future__ import annotations

from ottla.common.errors import OttlaError

EXACTLY_ONCE, AT_LEAST_ONCE = "exactly_once_v2", "at_least_once"


def check_guarantee(name: str) -> str:
    if name not in (EXACTLY_ONCE, AT_LEAST_ONCE):
        raise OttlaError(f"there is no processing_guarantee '{name}': choose {EXACTLY_ONCE} or {AT_LEAST_ONCE}.")
    return name
