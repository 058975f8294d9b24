"""What a worker's connectors have done, as metrics under the names that Kafka Connect's beans have.

`kafka.connect:type=source-task-metrics` with its attribute `source-record-poll-total` is
`kafka_connect_source_task_metrics_source_record_poll_total`. Rates are Prometheus' to reckon. Each worker tells of the
connectors that it runs. Of a connector with many tasks, and of a worker with many connectors, the first have series of
their own; all others are `__other__`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ottla.connect.rounds.context import Progress
from ottla.connect.storage import statuses

if TYPE_CHECKING:
    from prometheus_client.core import Metric

TASKS_MAX = 32
CONNECTORS_MAX = 500
OTHER = "__other__"
STATES = (
    statuses.UNASSIGNED,
    statuses.RUNNING,
    statuses.PAUSED,
    statuses.FAILED,
    statuses.RESTARTING,
    statuses.STOPPED,
)
_SOURCE, _SINK, _ERRORS = "source_task_metrics", "sink_task_metrics", "task_error_metrics"
# Counters by connector and task: the bean, the attribute, what it means.
_TOTALS = {
    "polled": (_SOURCE, "source_record_poll_total", "Records that a source's task has read."),
    "published": (_SOURCE, "source_record_write_total", "Records of it that were published."),
    "read": (_SINK, "sink_record_read_total", "Records that a sink's task has read from topics."),
    "sent": (_SINK, "sink_record_send_total", "Records of it that the target has taken."),
    "failed": (_ERRORS, "total_record_failures", "Records that could not be converted, transformed or written."),
    "skipped": (_ERRORS, "total_records_skipped", "Records that were left out, dead letters among them."),
    "dead_letters": (_ERRORS, "deadletterqueue_produce_requests", "Dead letters that were written."),
}


@dataclass
class _Connector:
    state: str = statuses.UNASSIGNED
    tasks: int = 0
    rounds: int = 0
    seconds: float = 0.0
    failures: int = 0
    last_failure_s: float = 0.0
    lag_max: int | None = None
    totals: dict[str, dict[str, int]] = field(default_factory=dict)


class WorkerMetrics:
    """Told by threads of connectors, asked by a scraper."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._connectors: dict[str, _Connector] = {}
        self._rebalances = 0
        self._rebalanced_s: float | None = None
        self._epoch = 0
        self._is_rebalancing = True

    # --- what is told

    def progressed(self, name: str, progress: Progress) -> None:
        """A round has succeeded; without tasks, one begins."""
        with self._guard:
            one = self._known(name)
            one.rounds += bool(progress.tasks)
            one.seconds += progress.seconds
            one.lag_max = progress.lag_max
            for number, counts in enumerate(progress.tasks):
                label = str(number) if number < TASKS_MAX else OTHER
                for what, count in counts.items():
                    totals = one.totals.setdefault(what, {})
                    totals[label] = totals.get(label, 0) + count

    def reported(self, name: str, state: str, tasks: int) -> None:
        with self._guard:
            one = self._known(name)
            one.state, one.tasks = state, tasks
            if state == statuses.FAILED:
                one.failures += 1
                one.last_failure_s = time.time()

    def forget(self, name: str) -> None:
        """It does not run here any more."""
        with self._guard:
            self._connectors.pop(name, None)

    def rebalanced(self, epoch: int | None) -> None:
        """None: the group shares its connectors out anew."""
        with self._guard:
            self._is_rebalancing = epoch is None
            if epoch is not None:
                self._rebalances += 1
                self._rebalanced_s, self._epoch = time.monotonic(), epoch

    def _known(self, name: str) -> _Connector:
        # Guarded by whoever calls.
        if name not in self._connectors and len(self._connectors) >= CONNECTORS_MAX:
            name = OTHER
        return self._connectors.setdefault(name, _Connector())

    # --- what is asked

    def families(self, *, is_leader: bool) -> list[Metric]:
        with self._guard:
            known = {name: one for name, one in sorted(self._connectors.items()) if name != OTHER}
            return [
                *self._of_worker(is_leader),
                *self._of_states(known),
                *self._of_rounds(self._connectors),
                *self._of_records(self._connectors),
            ]

    def _of_records(self, known: Mapping[str, _Connector]) -> Iterator[Metric]:
        from ottla.exposition.families import counters

        for what, (bean, attribute, doc) in _TOTALS.items():
            values: dict[tuple[str, ...], float] = {
                (name, task): float(count)
                for name, one in known.items()
                for task, count in one.totals.get(what, {}).items()
            }
            total = attribute if attribute.endswith("_total") else f"{attribute}_total"
            yield counters(f"kafka_connect_{bean}_{total}", doc, ["connector", "task"], values)

    def _of_worker(self, is_leader: bool) -> Iterator[Metric]:
        from ottla.exposition.families import counter, gauge

        worker, rebalance = "kafka_connect_connect_worker_metrics", "kafka_connect_connect_worker_rebalance_metrics"
        tasks = sum(one.tasks for one in self._connectors.values())
        yield gauge(f"{worker}_connector_count", "Connectors that this worker runs.", len(self._connectors))
        yield gauge(f"{worker}_task_count", "Their tasks.", tasks)
        done = "How often connectors were shared out."
        yield counter(f"{rebalance}_completed_rebalances_total", done, self._rebalances)
        yield gauge(f"{rebalance}_rebalancing", "Whether that goes on now.", float(self._is_rebalancing))
        yield gauge(f"{rebalance}_epoch", "The generation of the group.", self._epoch)
        if self._rebalanced_s is not None:
            since_ms = (time.monotonic() - self._rebalanced_s) * 1000
            yield gauge(f"{rebalance}_time_since_last_rebalance_ms", "Since the last of them.", since_ms)
        yield gauge("ottla_connect_leader", "Whether this worker leads its group.", float(is_leader))

    def _of_states(self, known: Mapping[str, _Connector]) -> Iterator[Metric]:
        from ottla.exposition.families import gauges

        yield gauges(
            "kafka_connect_connector_metrics_status",
            "1 for the state that a connector is in, 0 for the others.",
            ["connector", "status"],
            {(name, state.lower()): float(one.state == state) for name, one in known.items() for state in STATES},
        )
        yield gauges(
            "kafka_connect_connector_task_metrics_status",
            "1 for the state that a task is in.",
            ["connector", "task", "status"],
            {
                (name, str(number), one.state.lower()): 1.0
                for name, one in known.items()
                for number in range(min(one.tasks, TASKS_MAX))
            },
        )

    def _of_rounds(self, known: Mapping[str, _Connector]) -> Iterator[Metric]:
        from ottla.exposition.families import counters, gauges

        label = ["connector"]
        yield gauges(
            "kafka_connect_sink_task_metrics_sink_record_lag_max",
            "Records of the partition that is furthest behind.",
            label,
            {(name,): float(one.lag_max) for name, one in known.items() if one.lag_max is not None},
        )
        yield gauges(
            "kafka_connect_task_error_metrics_last_error_timestamp",
            "When a connector last failed, in ms since 1970.",
            label,
            {(name,): one.last_failure_s * 1000 for name, one in known.items() if one.failures},
        )
        totals: tuple[tuple[str, str, Callable[[_Connector], float]], ...] = (
            ("failures", "How often a connector became FAILED.", lambda one: one.failures),
            ("rounds", "Rounds that had something to do.", lambda one: one.rounds),
            ("round_seconds", "What they took.", lambda one: one.seconds),
        )
        for what, doc, value in totals:
            values: dict[tuple[str, ...], float] = {(name,): value(one) for name, one in known.items()}
            yield counters(f"ottla_connect_{what}_total", doc, label, values)
