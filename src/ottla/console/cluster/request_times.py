"""How long requests took, by API, from two looks at a broker's metrics. PURE.

Ottla's brokers tell histograms, which count since the broker began: the difference of two looks is what happened
between, and percentiles are found in it as Prometheus finds them. Kafka's JMX exporter tells percentiles that Kafka has
made itself. A percentile is None where nobody asked meanwhile.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

NAME = "kafka_network_requestmetrics_totaltimems"
SHARES = (0.5, 0.95, 0.99)
_LINE = re.compile(rf"^{NAME}(_bucket|_count)?\{{([^}}]*)\}}\s+(\S+)", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_APIS_MAX = 200


@dataclass
class ApiLook:
    """One API of one broker, since it began."""

    count: float = 0.0
    # Milliseconds, and how many requests took no longer.
    buckets: dict[float, float] = field(default_factory=dict)
    # Of brokers that tell percentiles themselves.
    quantiles: dict[float, float] = field(default_factory=dict)


@dataclass(frozen=True)
class ApiTimes:
    """One API between two looks, over all brokers."""

    api: str
    per_s: float
    # By share, in milliseconds.
    percentiles: Mapping[float, float | None]


def read_times(text: str) -> dict[str, ApiLook]:
    """From the text format of Prometheus; whatever else is in it is passed over."""
    found: dict[str, ApiLook] = {}
    for part, labels_text, number in _LINE.findall(text):
        labels = dict(_LABEL.findall(labels_text))
        api, value = labels.get("request"), _number(number)
        if api is None or value is None or (api not in found and len(found) >= _APIS_MAX):
            continue
        look = found.setdefault(api, ApiLook())
        if part == "_count":
            look.count = value
        elif part == "_bucket" and (limit := _number(labels.get("le", ""))) is not None:
            look.buckets[limit] = value
        elif not part and (share := _number(labels.get("quantile", ""))) is not None:
            look.quantiles[share] = value
    return found


def between(
    before: Mapping[str, Mapping[str, ApiLook]], now: Mapping[str, Mapping[str, ApiLook]], elapsed_s: float
) -> list[ApiTimes]:
    """By broker, then by API; those that were asked most come first. A broker that began anew meanwhile is left out."""
    looks: dict[str, list[tuple[ApiLook, ApiLook]]] = {}
    for broker, apis in now.items():
        for api, look in apis.items():
            # An API that nobody had asked is not told: with the first request it begins at nothing.
            earlier = before[broker].get(api, ApiLook()) if broker in before else None
            if earlier is not None and look.count >= earlier.count:
                looks.setdefault(api, []).append((earlier, look))
    times = [_times(api, pairs, max(elapsed_s, 1e-3)) for api, pairs in looks.items()]
    return sorted(times, key=lambda one: (-one.per_s, one.api))


def _times(api: str, pairs: Iterable[tuple[ApiLook, ApiLook]], elapsed_s: float) -> ApiTimes:
    count, quantiles = 0.0, dict[float, float]()
    buckets: dict[float, float] = {}
    for earlier, look in pairs:
        count += look.count - earlier.count
        for limit, held in look.buckets.items():
            buckets[limit] = buckets.get(limit, 0.0) + held - earlier.buckets.get(limit, 0.0)
        if look.count > earlier.count:
            for share, value in look.quantiles.items():
                quantiles[share] = max(value, quantiles.get(share, 0.0))
    return ApiTimes(
        api, count / elapsed_s, {share: quantiles.get(share, percentile(buckets, share)) for share in SHARES}
    )


def percentile(buckets: Mapping[float, float], share: float) -> float | None:
    """Between the limits of the bucket in which it lies, in proportion; of the last one its lower limit is told."""
    limits = sorted(buckets)
    if not limits or buckets[limits[-1]] <= 0:
        return None
    wanted = share * buckets[limits[-1]]
    low, below = 0.0, 0.0
    for limit in limits:
        held = buckets[limit]
        if held >= wanted:
            if math.isinf(limit):
                return low
            return low + (limit - low) * ((wanted - below) / (held - below) if held > below else 1.0)
        low, below = limit, held
    return low


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return None if math.isnan(value) else value
