"""Requests as metrics, under the names that the usual rules of the JMX exporter give to those of Kafka."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import Metric, SummaryMetricFamily

from ottla.broker.observing.request_observer import RequestObserver
from ottla.common.errors import ErrorCode
from ottla.exposition.families import counters
from ottla.exposition.histogram_text import histogram_text

_PREFIX = "kafka_network_requestmetrics_"
_TIMES = (
    ("totaltimems", "total", "Milliseconds from when a request could be read until its answer was there."),
    ("requestqueuetimems", "queue", "Milliseconds that requests waited for others of the same turn of the event loop."),
    ("localtimems", "local", "Milliseconds that the broker worked on requests, until an answer or a promise of one."),
    ("remotetimems", "remote", "Milliseconds that requests waited for replicas, records, members or the disk."),
    ("throttletimems", "throttle", "Milliseconds for which clients were left alone because of their quotas."),
    (
        "responsesendtimems",
        "send",
        "Milliseconds until clients had read answers that their sockets did not take at once.",
    ),
)
_KNOWN = {code.value: code.name for code in ErrorCode}


def request_families(observer: RequestObserver) -> Iterator[Metric | bytes | None]:
    for its in observer.by_api.values():
        its.fold()
        yield None
    stats = {api: its for api, its in observer.by_api.items() if its.count}
    yield counters(
        _PREFIX + "requests_total",
        "Requests, by API and version.",
        ["request", "version"],
        {
            (api, str(version)): count
            for api, its in stats.items()
            for version, count in enumerate(its.versions)
            if count
        },
    )
    yield counters(
        _PREFIX + "errors_total",
        "Errors in answers, by API and error; of an answer that has very many, the first ones.",
        ["request", "error"],
        {
            (api, _KNOWN.get(code, str(code))): count
            for api, its in stats.items()
            for code, count in sorted(its.errors.items())
        },
    )
    for name, attribute in (("requestbytes", "request_bytes"), ("responsebytes", "response_bytes")):
        family = SummaryMetricFamily(_PREFIX + name, f"Bytes of {name[:-5]}s.", labels=["request"])
        for api, its in stats.items():
            family.add_metric([api], its.count, getattr(its, attribute))
        yield family
    for name, attribute, doc in _TIMES:
        yield histogram_text(
            _PREFIX + name,
            doc,
            ["request"],
            (
                ((api,), getattr(its, attribute), max(0, its.total.count - getattr(its, attribute).count))
                for api, its in stats.items()
            ),
            scale=1_000,
        )
        yield None
