"""The settings of a client metrics subscription (KIP-714): kept and described, but no client is asked for metrics."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ottla.common.config.broker_config import Source
from ottla.common.config.checks import Check, between
from ottla.common.config.layered import LayeredConfig
from ottla.common.config.setting import Unit, integer, names

_CLIENT_ATTRIBUTES = (
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)


def _are_patterns(values: Sequence[str]) -> bool:
    return all(_is_pattern(*value.partition("=")) for value in values)


def _is_pattern(attribute: str, equals: str, pattern: str) -> bool:
    try:
        re.compile(pattern)
    except re.error:
        return False
    return bool(equals) and attribute.strip() in _CLIENT_ATTRIBUTES


class ClientMetricsConfig(LayeredConfig):
    what = "client metrics"
    source = Source.DYNAMIC_CLIENT_METRICS_CONFIG

    interval_ms = integer(
        "interval.ms", 300_000, "How often clients send their metrics.", unit=Unit.MS, check=between(100, 3_600_000)
    )
    match = names(
        "match",
        (),
        "Which clients are meant: ATTRIBUTE=PATTERN pairs, all of which must match.",
        check=Check("ATTRIBUTE=PATTERN with one of " + ", ".join(_CLIENT_ATTRIBUTES), _are_patterns),
    )
    metrics = names("metrics", (), "Prefixes of the metrics that clients send; * means all.")
