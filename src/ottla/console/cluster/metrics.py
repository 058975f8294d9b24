"""What brokers measure about themselves and Kafka's protocol does not tell: read from their Prometheus endpoints, if
they were named. Ottla's broker and Kafka's JMX exporter use the same names."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.request import ProxyHandler, build_opener

_TIMEOUT_S = 3.0
_KEPT_S = 5.0
_BYTES_MAX = 16 * 1024 * 1024
_LINE = re.compile(r"^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{[^}]*\})?\s+([0-9.eE+-]+)", re.MULTILINE)

_LOOP_LAG = "ottla_event_loop_lag_seconds"
# Heading, name of the metric, how its numbers are put together, unit.
SHOWN = (
    ("under-replicated", "kafka_server_replicamanager_underreplicatedpartitions", sum, ""),
    ("offline", "kafka_controller_kafkacontroller_offlinepartitionscount", max, ""),
    ("bytes in", "kafka_server_brokertopicmetrics_bytesin_total", sum, "B"),
    ("bytes out", "kafka_server_brokertopicmetrics_bytesout_total", sum, "B"),
    ("loop lag", _LOOP_LAG, max, "s"),
)


@dataclass(frozen=True)
class Measured:
    name: str
    values: dict[str, str]


class Metrics:
    def __init__(self, urls: Sequence[str]) -> None:
        self._urls = urls
        self._opener = build_opener(ProxyHandler({}))
        self._lock = threading.Lock()
        self._read_s = -_KEPT_S
        self._rows: list[Measured] = []

    def rows(self) -> list[Measured]:
        if not self._urls:
            return []
        with self._lock:
            if time.monotonic() - self._read_s > _KEPT_S:
                self._rows = [self._row(url) for url in self._urls]
                self._read_s = time.monotonic()
            return self._rows

    def _row(self, url: str) -> Measured:
        target = url if "://" in url else f"http://{url}"
        target = target if target.count("/") > 2 else f"{target}/metrics"
        try:
            with self._opener.open(target, timeout=_TIMEOUT_S) as reply:
                text = reply.read(_BYTES_MAX).decode(errors="replace")
        except (OSError, ValueError) as error:
            return Measured(f"{url}: {error}", {heading: "–" for heading, _, _, _ in SHOWN})
        return Measured(url, measured(text))


def measured(text: str) -> dict[str, str]:
    """From the text format of Prometheus."""
    found: dict[str, list[float]] = {}
    for name, value in _LINE.findall(text):
        try:
            found.setdefault(name, []).append(float(value))
        except ValueError:
            continue
    # A histogram, of which the mean is told.
    sums, counts = (sum(found.get(f"{_LOOP_LAG}_{part}", [])) for part in ("sum", "count"))
    if counts:
        found[_LOOP_LAG] = [sums / counts]
    shown = {}
    for heading, name, together, unit in SHOWN:
        values = found.get(name)
        shown[heading] = "–" if not values else f"{together(values):,.6g}{f' {unit}' if unit else ''}"
    return shown
