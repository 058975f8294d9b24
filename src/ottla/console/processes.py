"""Business processes that the console watches, as `ottla trace watch` does: one thread reads, pages show its reports.

Nothing is committed, so a console changes nothing and two of them do not meet. It begins a day, or one horizon of the
process if that is longer, before its start: what is older is left alone.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ottla.client.retrying import as_sentence
from ottla.client.settings import ClientSettings
from ottla.common.errors import OttlaError
from ottla.tracing.process import Process, ProcessReport, ProcessWatch, load_process

_log = logging.getLogger("ottla.console")
_BEFORE_MS = 86_400_000
_JOIN_S_MAX = 20.0


@dataclass
class Watched:
    """`report` is None until the first round is over; `problem` is why the last one failed."""

    process: Process
    since_ms: int
    report: ProcessReport | None = None
    problem: str | None = None


class Watches:
    def __init__(self, client: ClientSettings, files: Sequence[Path], interval_s: float) -> None:
        """Raises OttlaError for files that are none."""
        self._client = client
        self._interval_s = interval_s
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []
        self.all: dict[str, Watched] = {}
        now_ms = time.time_ns() // 1_000_000
        for file in files:
            process = load_process(file)
            if process.name in self.all:
                raise OttlaError(f"two files define the process '{process.name}': leave one of them out.")
            self.all[process.name] = Watched(process, now_ms - max(_BEFORE_MS, process.horizon_ms))

    def start(self) -> None:
        for one in self.all.values():
            thread = threading.Thread(target=self._run, args=(one,), name=f"watch-{one.process.name}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def stop(self) -> None:
        self._stopping.set()
        deadline_s = time.monotonic() + _JOIN_S_MAX
        for thread in self._threads:
            thread.join(max(0.0, deadline_s - time.monotonic()))

    def _run(self, one: Watched) -> None:
        watch = ProcessWatch(
            self._client,
            one.process,
            since_ms=one.since_ms,
            is_resumable=False,
            is_cancelled=self._stopping.is_set,
        )
        try:
            while not self._stopping.is_set():
                try:
                    one.report, one.problem = watch.round(), None
                except (OttlaError, OSError) as error:
                    one.problem = str(as_sentence(error))
                except Exception as error:  # the page says so, and the next round may go better
                    _log.exception("the process %s could not be read", one.process.name)
                    one.problem = f"a record was not understood: {error}."
                self._stopping.wait(self._interval_s)
        finally:
            watch.close()
