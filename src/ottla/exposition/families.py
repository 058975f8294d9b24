"""Families of metrics, made in a line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from ottla.exposition.histogram import Histogram

Labels = tuple[str, ...]


def gauge(name: str, doc: str, value: float) -> Metric:
    return GaugeMetricFamily(name, doc, value=value)


def gauges(name: str, doc: str, labels: Sequence[str], values: Mapping[Labels, float]) -> Metric:
    family = GaugeMetricFamily(name, doc, labels=labels)
    for key, value in values.items():
        family.add_metric(key, value)
    return family


def counter(name: str, doc: str, value: float) -> Metric:
    """`name` ends in `_total`."""
    return CounterMetricFamily(name, doc, value=value)


def counters(name: str, doc: str, labels: Sequence[str], values: Mapping[Labels, float]) -> Metric:
    family = CounterMetricFamily(name, doc, labels=labels)
    for key, value in values.items():
        family.add_metric(key, value)
    return family


def histograms(
    name: str,
    doc: str,
    labels: Sequence[str],
    values: Iterable[tuple[Labels, Histogram, int]],
    *,
    scale: float = 1.0,
) -> HistogramMetricFamily:
    """The number is how many values of 0 there were beside those of the histogram. `scale` is 1,000 where seconds are
    told as milliseconds, because Kafka does."""
    family = HistogramMetricFamily(name, doc, labels=labels)
    for key, histogram, zeros in values:
        family.add_metric(key, histogram.buckets(zeros=zeros, scale=scale), histogram.sum * scale)
    return family
