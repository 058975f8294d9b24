"""Whether requests are observed now: while metrics are served, slow ones are to be logged, or some are for a while.

A broker that does none of it pays nothing. The settings are dynamic, and a log of requests ends by itself.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from ottla.broker.observing.request_log import TOO_FAR, RequestLog, is_too_far
from ottla.broker.observing.request_observer import RequestObserver
from ottla.common.errors import OttlaError

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.chores.timers import Handle
    from ottla.broker.router import Router
    from ottla.common.config import BrokerConfig

log = logging.getLogger("ottla.request")

SETTINGS = frozenset(("ottla.slow.request.log.ms", "ottla.request.log", "ottla.request.log.until.ms"))


class ObservingSwitch:
    def __init__(self, broker: Broker, router: Router, on_switch: Callable[[RequestObserver | None], None]) -> None:
        """`on_switch` is told who observes from now on."""
        self._broker = broker
        self._on_switch = on_switch
        # Counts go on where they were while it is off.
        self.observer = RequestObserver(broker, router)
        self._are_metrics_served = False
        self._was_logging = False
        self._end: Handle | None = None
        broker.config.on_trial(self._try_out)
        broker.config.on_change(self._on_change)

    def serve_metrics(self) -> None:
        self._are_metrics_served = True
        self.look()

    def _try_out(self, wanted: BrokerConfig) -> None:
        """What is there already is no reason to refuse another change: a clock may have been set back."""
        until_ms = wanted.ottla_request_log_until_ms
        if until_ms != self._broker.config.ottla_request_log_until_ms and is_too_far(until_ms, self._broker.clock):
            raise OttlaError(TOO_FAR)

    def _on_change(self, changed: frozenset[str]) -> None:
        if changed & SETTINGS:
            self.look()

    def look(self) -> None:
        broker = self._broker
        requests = RequestLog(broker.config, broker.clock, lambda: broker.image)
        self.observer.set_log(requests if requests.is_on else None)
        broker.observer = self.observer if self._are_metrics_served or requests.is_on else None
        self._on_switch(broker.observer)
        if self._end is not None:
            self._end.cancel()
            self._end = None
        if requests.is_logging_requests:
            left_ms = requests.until_ms - broker.clock.now_ms()
            log.info(
                "requests are logged for a while",
                extra={"which": ",".join(broker.config.ottla_request_log), "seconds": left_ms // 1_000},
            )
            self._end = broker.call_later(left_ms + 1, self.look)
        elif self._was_logging:
            log.info("requests are not logged any more")
        self._was_logging = requests.is_logging_requests
