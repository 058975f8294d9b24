"""A pipeline, or an application of Ottla Streams, as metrics over HTTP: what its status file says, read when asked."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ottla.exposition.address import parse_address
from ottla.exposition.endpoint import Endpoint, Query, Reply
from ottla.exposition.threaded import ThreadedEndpoint
from ottla.spark.pipeline.home import DIED, FAILED, FINISHED, RUNNING, STARTING, STOPPED, STOPPING, WAITING, Home

if TYPE_CHECKING:
    from prometheus_client.core import Metric

_STATES = (STARTING, RUNNING, WAITING, STOPPING, STOPPED, FINISHED, FAILED, DIED)
_TOTALS = (
    ("rows_in", "rows_in", "Records that were read."),
    ("bytes_in", "bytes_in", "Bytes of their keys and values."),
    ("rows_out", "rows_out", "Rows that were written."),
    ("dead_letters", "dead_letters", "Records that were set aside."),
    ("late_rows", "late_rows", "Rows that came after their watermark."),
    ("dropped", "dropped", "Records that a topology dropped."),
    ("restarts", "restarts", "How often it was started again after trouble that passes."),
)


def pipeline_families(home: Home) -> Iterator[Metric]:
    from ottla.exposition.families import counters, gauges

    status = home.read()
    name = (status.name,)

    def told(metric: str, doc: str, value: float) -> Metric:
        return gauges(f"ottla_pipeline_{metric}", doc, ["pipeline"], {name: value})

    for metric, attribute, doc in _TOTALS:
        yield counters(f"ottla_pipeline_{metric}_total", doc, ["pipeline"], {name: getattr(status, attribute)})
    yield gauges(
        "ottla_pipeline_state",
        "1 for the state that it is in, 0 for the others.",
        ["pipeline", "state"],
        {(status.name, state): float(status.state == state) for state in _STATES},
    )
    if status.lag is not None:
        yield told("lag", "Records that are there and not read yet.", status.lag)
    if status.batch is not None:
        yield told("batch", "The number of the last micro-batch.", status.batch)
    yield told("batch_seconds", "How long the last micro-batch took.", status.batch_ms / 1_000)
    yield told("input_rows_per_second", "Of the last micro-batch, as Spark tells it.", status.input_rows_per_s)
    yield told("state_entries", "Entries in the stores of the tasks that last ran.", status.state_entries)
    yield told("updated_timestamp_seconds", "When this was last true.", status.updated)
    yield told("up_seconds", "Since when it runs.", max(0.0, time.time() - status.started) if status.started else 0.0)


def serve_pipeline_metrics(home: Home, address: str) -> tuple[str, ThreadedEndpoint]:
    """Where it is served, and what to enter. Raises OttlaError when the address cannot be used."""
    from ottla.exposition.text import CONTENT_TYPE, text_of

    async def metrics(_: Query) -> Reply:
        return Reply(text_of(pipeline_families(home)), CONTENT_TYPE)

    async def live(_: Query) -> Reply:
        return Reply(b"alive\n")

    async def ready(_: Query) -> Reply:
        state = home.read().state
        return Reply(b"ready\n") if state == RUNNING else Reply(f"not ready: {state}\n".encode(), status=503)

    pages: dict[str, Any] = {"/metrics": metrics, "/health/live": live, "/health/ready": ready}
    endpoint = Endpoint(pages)
    endpoint.bind(*parse_address(address, what="--metrics"), what="--metrics")
    return endpoint.url, ThreadedEndpoint(endpoint)
