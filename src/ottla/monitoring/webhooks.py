"""Tells changes of a status to webhooks: a JSON object each, by POST, tried again for a while.

The queue is small. When a receiver is away for long the oldest are dropped and counted: what is true now is in the next
one, and an alarm of yesterday helps nobody.
"""

from __future__ import annotations

import json
import logging
import threading
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Callable, Sequence

from ottla import __version__
from ottla.common.errors import OttlaError
from ottla.monitoring.monitor import StatusChange

log = logging.getLogger("ottla.monitor")

QUEUE_MAX = 100
_TRIES_MAX = 6
_TIMEOUT_S = 10.0
_FIRST_PAUSE_S = 1.0

Post = Callable[[str, bytes], None]


def post(url: str, body: bytes) -> None:
    """Raises OSError."""
    headers = {"Content-Type": "application/json", "User-Agent": f"ottla/{__version__}"}
    request = urllib.request.Request(url, data=body, headers=headers, method="POST")
    with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:
        answer.read(1024)


def check_url(url: str) -> str:
    if not url.startswith(("http://", "https://")):
        raise OttlaError(f"the webhook {url!r} is no URL: expected http://... or https://....")
    return url


class Webhooks:
    """A thread of its own; `tell` never waits."""

    def __init__(self, urls: Sequence[str], *, send: Post = post, first_pause_s: float = _FIRST_PAUSE_S) -> None:
        self._urls = [check_url(url) for url in urls]
        self._send = send
        self._first_pause_s = first_pause_s
        self._waiting: deque[tuple[str, bytes]] = deque()
        self._changed = threading.Condition()
        self._is_stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self.sent = 0
        self.dropped = 0

    def start(self) -> None:
        if self._urls:
            self._thread = threading.Thread(target=self._run, name="ottla-webhooks", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """What waits is not sent any more."""
        self._is_stopping.set()
        with self._changed:
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(_TIMEOUT_S)

    def tell(self, change: StatusChange) -> None:
        body = json.dumps(change._asdict()).encode()
        with self._changed:
            for url in self._urls:
                if len(self._waiting) >= QUEUE_MAX:
                    self._waiting.popleft()
                    self.dropped += 1
                self._waiting.append((url, body))
            self._changed.notify_all()

    def _run(self) -> None:
        while not self._is_stopping.is_set():
            with self._changed:
                while not self._waiting and not self._is_stopping.is_set():
                    self._changed.wait()
                if self._is_stopping.is_set():
                    return
                url, body = self._waiting.popleft()
            self._deliver(url, body)

    def _deliver(self, url: str, body: bytes) -> None:
        pause_s = self._first_pause_s
        for attempt in range(1, _TRIES_MAX + 1):
            try:
                self._send(url, body)
            except urllib.error.HTTPError as error:
                if 400 <= error.code < 500 and error.code not in (408, 429):
                    self._give_up(url, f"it answers {error.code}")
                    return
                why = f"it answers {error.code}"
            except OSError as error:
                why = str(error)
            else:
                self.sent += 1
                return
            if attempt == _TRIES_MAX:
                self._give_up(url, why)
            elif self._is_stopping.wait(pause_s):
                return
            pause_s *= 2

    def _give_up(self, url: str, why: str) -> None:
        self.dropped += 1
        log.error("a webhook was not told of a change", extra={"url": url, "why": why})
