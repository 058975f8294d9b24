"""The monitor as a process: looks at the cluster in a thread, answers over HTTP, tells webhooks.

/metrics                     for Prometheus
/v1/cluster                  brokers, and what under-replicated partitions tell
/v1/groups                   every group with its status, lag and seconds behind
/v1/groups/NAME              one of them, with its partitions and the history of its lag
/health/live, /health/ready  ready: the cluster was looked at, not long ago
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Iterator, Sequence

from prometheus_client.core import Metric

from ottla.client.address import ClusterAddress
from ottla.common.errors import OttlaError
from ottla.exposition.endpoint import Endpoint, Page, Query, Reply, json_reply
from ottla.exposition.families import counter
from ottla.exposition.protection import OPEN, Protection
from ottla.exposition.text import CONTENT_TYPE, text_of
from ottla.monitoring.api import cluster_json, group_json, groups_json
from ottla.monitoring.metrics import monitor_families
from ottla.monitoring.monitor import ClusterReport, Monitor, MonitorSettings, StatusChange
from ottla.monitoring.sampling import ClusterSampler
from ottla.monitoring.webhooks import Webhooks

log = logging.getLogger("ottla.monitor")

# So many intervals without a look, and the monitor is not ready.
_INTERVALS_MAX = 3
_GROUPS = "/v1/groups/"


class MonitorService:
    """`url`, `start` and `stop`, as `ottla.http.until_signal` wants them."""

    def __init__(
        self,
        address: ClusterAddress,
        host: str,
        port: int,
        settings: MonitorSettings,
        webhooks: Sequence[str] = (),
        protection: Protection = OPEN,
    ) -> None:
        self._address = address
        self._settings = settings
        self.webhooks = Webhooks(webhooks)
        self.monitor = Monitor(settings, self._on_change)
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._looked_at: float | None = None
        self._failures = 0
        self._writing = threading.Lock()
        self._written: tuple[ClusterReport, bytes] | None = None
        self._endpoint = Endpoint(
            {
                "/metrics": self._metrics,
                "/v1/cluster": self._cluster,
                "/v1/groups": self._groups,
                "/health/live": self._live,
                "/health/ready": self._ready,
            },
            self._find_page,
            protection,
        )
        self._endpoint.bind(host, port, what="--listen")

    @property
    def url(self) -> str:
        return self._endpoint.url

    async def start(self) -> None:
        await self._endpoint.start()
        self.webhooks.start()
        self._thread = threading.Thread(target=self._run, name="ottla-monitor", daemon=True)
        self._thread.start()

    async def stop(self) -> None:
        self._stopping.set()
        await self._endpoint.stop()
        await asyncio.to_thread(self._end)

    def _end(self) -> None:
        self.webhooks.stop()
        if self._thread is not None:
            self._thread.join(self._settings.interval_s + 10)

    # --- looking

    def _run(self) -> None:
        sampler = ClusterSampler(self._address)
        is_lost = False
        while not self._stopping.is_set():
            began = time.monotonic()
            try:
                report = self.monitor.take(sampler.look())
                self._looked_at = time.monotonic()
                if is_lost:
                    log.info("the cluster answers again")
                is_lost = False
                for trouble in report.troubles:
                    log.warning(trouble)
            except (OttlaError, OSError) as error:
                self._failures += 1
                if not is_lost:
                    log.error("the cluster does not answer", extra={"why": str(error)})
                is_lost = True
            except Exception:
                self._failures += 1
                log.exception("a look at the cluster failed")
            self._stopping.wait(max(0.0, self._settings.interval_s - (time.monotonic() - began)))
        sampler.close()

    def _on_change(self, change: StatusChange) -> None:
        is_well = change.after in ("OK", "none")
        log.log(
            logging.INFO if is_well else logging.WARNING,
            "%s %s is %s now",
            change.kind,
            change.name,
            change.after,
            extra={"before": change.before, "why": change.why},
        )
        self.webhooks.tell(change)

    # --- pages

    def _own_families(self) -> Iterator[Metric]:
        yield counter("ottla_monitor_failures_total", "Looks that failed.", self._failures)
        yield counter("ottla_monitor_webhooks_sent_total", "Changes that webhooks were told of.", self.webhooks.sent)
        yield counter("ottla_monitor_webhooks_dropped_total", "Those that they were not.", self.webhooks.dropped)

    def _text(self) -> bytes:
        """Ten thousand partitions of groups take a second: once for each look, however many scrape."""
        with self._writing:
            report = self.monitor.report
            if self._written is None or self._written[0] is not report:
                self._written = (report, text_of(monitor_families(report)))
            return self._written[1] + text_of(self._own_families())

    async def _metrics(self, _: Query) -> Reply:
        return Reply(await asyncio.to_thread(self._text), CONTENT_TYPE)

    async def _cluster(self, _: Query) -> Reply:
        return json_reply(cluster_json(self.monitor.report))

    async def _groups(self, _: Query) -> Reply:
        return json_reply(groups_json(self.monitor.report))

    def _find_page(self, path: str) -> Page | None:
        if not path.startswith(_GROUPS):
            return None
        name = path.removeprefix(_GROUPS)

        async def page(_: Query) -> Reply:
            group = self.monitor.report.groups.get(name)
            if group is None:
                return json_reply({"error": f"there is no group '{name}'"}, 404)
            return json_reply(group_json(group, self.monitor.lag_history(name)))

        return page

    async def _live(self, _: Query) -> Reply:
        return Reply(b"alive\n")

    async def _ready(self, _: Query) -> Reply:
        looked_at = self._looked_at
        if looked_at is None:
            return Reply(b"not ready: the cluster was not looked at yet\n", status=503)
        if time.monotonic() - looked_at > _INTERVALS_MAX * self._settings.interval_s:
            return Reply(b"not ready: the cluster does not answer\n", status=503)
        return Reply(b"ready\n")
