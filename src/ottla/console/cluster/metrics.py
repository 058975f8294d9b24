"""What brokers measure about themselves and Kafka's protocol does not tell: read from their Prometheus endpoints, if
they were named. Ottla's broker and Kafka's JMX exporter use the same names.

A thread reads them again and again, so no page waits for an endpoint. Counters become rates, histograms percentiles:
what happened between two looks. The last half hour is kept for plots.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.client import HTTPException
from urllib.error import HTTPError
from urllib.request import Request

from ottla.client.access.http_place import HttpPlace, http_place, reason_of
from ottla.console.cluster.history import History
from ottla.console.cluster.request_times import SHARES, ApiLook, ApiTimes, between, read_times

_log = logging.getLogger("ottla.console")
_TIMEOUT_S = 3.0
_BYTES_MAX = 16 * 1024 * 1024
_ASKED_AT_ONCE = 8
_LINE = re.compile(r"^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{[^}]*\})?\s+([0-9.eE+-]+)", re.MULTILINE)

_UNDER = "kafka_server_replicamanager_underreplicatedpartitions"
_OFFLINE = "kafka_controller_kafkacontroller_offlinepartitionscount"
_BYTES_IN = "kafka_server_brokertopicmetrics_bytesin_total"
_BYTES_OUT = "kafka_server_brokertopicmetrics_bytesout_total"
_REQUESTS = "kafka_network_requestmetrics_totaltimems_count"
_LOOP_SUM, _LOOP_COUNT = "ottla_event_loop_lag_seconds_sum", "ottla_event_loop_lag_seconds_count"
_TOGETHER = {_OFFLINE: max}


@dataclass(frozen=True)
class Scrape:
    """One endpoint at one moment."""

    at_s: float
    numbers: Mapping[str, float] = field(default_factory=dict)
    times: Mapping[str, ApiLook] = field(default_factory=dict)
    problem: str | None = None


@dataclass(frozen=True)
class Measured:
    """One broker: what is None is not known (yet)."""

    name: str
    problem: str | None = None
    under_replicated: float | None = None
    offline: float | None = None
    bytes_in_per_s: float | None = None
    bytes_out_per_s: float | None = None
    requests_per_s: float | None = None
    loop_lag_ms: float | None = None


class Metrics:
    def __init__(self, urls: Sequence[str], interval_s: float, *, ca: str | None = None) -> None:
        """`https://user:password@host:port` logs in. Raises OttlaError."""
        self._places = [_place(url, ca) for url in urls]
        self._interval_s = interval_s
        self._last: dict[str, Scrape] = {}
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self.history = History()
        self.rows: list[Measured] = [Measured(place.url, "it was not read yet") for place in self._places]
        self.apis: list[ApiTimes] = []

    def start(self) -> None:
        if self._places:
            self._thread = threading.Thread(target=self._run, name="console-metrics", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(2 * _TIMEOUT_S)

    def _run(self) -> None:
        urls = [place.url for place in self._places]
        with ThreadPoolExecutor(min(_ASKED_AT_ONCE, len(urls)), "console-metrics") as askers:
            while not self._stopping.is_set():
                try:
                    self.take(dict(zip(urls, askers.map(_scrape, self._places), strict=True)))
                except Exception:  # an answer that nobody expected: the next one may be another
                    _log.exception("metrics of the brokers could not be read")
                self._stopping.wait(self._interval_s)

    def take(self, now: Mapping[str, Scrape]) -> None:
        """What the endpoints said, by their addresses."""
        self.rows = [_measured(url, self._last.get(url), scrape) for url, scrape in now.items()]
        good = {url: scrape for url, scrape in now.items() if scrape.problem is None}
        known = {url: scrape for url, scrape in self._last.items() if url in good}
        if known:
            elapsed_s = max(good[url].at_s - scrape.at_s for url, scrape in known.items())
            self.apis = between(
                {url: scrape.times for url, scrape in known.items()},
                {url: good[url].times for url in known},
                elapsed_s,
            )
            self.history.add(time.time(), _values(self.apis))
        self._last |= good


def _place(text: str, ca: str | None) -> HttpPlace:
    return http_place(text, what="a broker's metrics", example="http://127.0.0.1:9404", ca=ca)


def _scrape(place: HttpPlace) -> Scrape:
    target = place.url if place.url.count("/") > 2 else f"{place.url}/metrics"
    request = Request(target + place.query, headers=dict(place.headers))
    at_s = time.monotonic()
    try:
        with place.opener.open(request, timeout=_TIMEOUT_S) as reply:
            text = reply.read(_BYTES_MAX).decode(errors="replace")
    except (OSError, ValueError, HTTPException) as error:
        return Scrape(at_s, problem=_why_not(error, place))
    return Scrape(at_s, numbers_of(text), read_times(text))


def _why_not(error: Exception, place: HttpPlace) -> str:
    if not isinstance(error, HTTPError):
        return f"it does not answer ({reason_of(error, '--metrics-ca')})."
    if error.code != 401:
        return f"it answers {error.code} {error.reason}: look at the address of --metrics."
    if place.has_login:
        return "it does not take the login that --metrics has for it."
    return "it asks for a login: give --metrics with it, as in http://USER:PASSWORD@HOST:9404."


def numbers_of(text: str) -> dict[str, float]:
    """From the text format of Prometheus: sums over all labels."""
    found: dict[str, list[float]] = {}
    for name, value in _LINE.findall(text):
        try:
            found.setdefault(name, []).append(float(value))
        except ValueError:
            continue
    return {name: _TOGETHER.get(name, sum)(values) for name, values in found.items()}


def _measured(url: str, before: Scrape | None, now: Scrape) -> Measured:
    if now.problem is not None:
        return Measured(url, now.problem)

    def rate(name: str) -> float | None:
        if before is None or name not in now.numbers or name not in before.numbers:
            return None
        moved = now.numbers[name] - before.numbers[name]
        return moved / max(1e-3, now.at_s - before.at_s) if moved >= 0 else None

    waited, times = rate(_LOOP_SUM), rate(_LOOP_COUNT)
    return Measured(
        url,
        under_replicated=now.numbers.get(_UNDER),
        offline=now.numbers.get(_OFFLINE),
        bytes_in_per_s=rate(_BYTES_IN),
        bytes_out_per_s=rate(_BYTES_OUT),
        requests_per_s=rate(_REQUESTS),
        loop_lag_ms=waited / times * 1000 if waited is not None and times else None,
    )


def _values(apis: Sequence[ApiTimes]) -> dict[str, float | None]:
    values: dict[str, float | None] = {}
    for one in apis:
        values[f"rate:{one.api}"] = one.per_s
        for share in SHARES:
            values[f"p{share * 100:.0f}:{one.api}"] = one.percentiles[share]
    return values
