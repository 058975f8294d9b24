"""The worker's Spark, which is opened anew when its JVM has died: connectors fail meanwhile, and go on then."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

from ottla.spark.pipeline.spark_process import close_session

_LOG = logging.getLogger("ottla.connect.spark")


class WorkerSpark:
    def __init__(self, session: Any, open_again: Callable[[], Any] | None) -> None:
        """`open_again` is None for a session that is somebody else's."""
        self._session = session
        self._open_again = open_again
        self._guard = threading.Lock()

    @property
    def session(self) -> Any:
        return self._session

    def revive(self) -> None:
        """After a failure. Raises whatever opening it raises."""
        if self._open_again is None:
            return
        with self._guard:
            if not self._is_there():
                _LOG.warning("Spark's JVM is gone: starting another one")
                close_session(self._session)
                self._session = self._open_again()

    def _is_there(self) -> bool:
        try:
            return not self._session.sparkContext._jsc.sc().isStopped()
        except Exception:
            return False

    def close(self) -> None:
        if self._open_again is not None:
            close_session(self._session)
