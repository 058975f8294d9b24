"""Tells changes of a status to webhooks: a JSON object each, by POST, tried again for a while.

Each receiver has a small queue and a thread of its own, so one that hangs holds up no alarm for another. When one is
away for long the oldest are dropped and counted: what is true now is in the next one, and an alarm of yesterday helps
nobody.
"""

from __future__ import annotations

import json
import logging
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections import deque
from collections.abc import Callable, Sequence

from ottla import __version__
from ottla.client.access.redirects import NoRedirects
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
    with urllib.request.build_opener(NoRedirects).open(request, timeout=_TIMEOUT_S) as answer:
        answer.read(1024)


def check_url(url: str) -> str:
    if not url.startswith(("http://", "https://")):
        raise OttlaError(f"the webhook {url!r} is no URL: expected http://... or https://....")
    return url


class Webhooks:
    """`tell` never waits."""

    def __init__(self, urls: Sequence[str], *, send: Post = post, first_pause_s: float = _FIRST_PAUSE_S) -> None:
        self._receivers = [_Receiver(check_url(url), send, first_pause_s) for url in urls]

    @property
    def sent(self) -> int:
        return sum(receiver.sent for receiver in self._receivers)

    @property
    def dropped(self) -> int:
        return sum(receiver.dropped for receiver in self._receivers)

    def start(self) -> None:
        for receiver in self._receivers:
            receiver.start()

    def stop(self) -> None:
        """What waits is not sent any more."""
        for receiver in self._receivers:
            receiver.begin_to_stop()
        deadline = time.monotonic() + _TIMEOUT_S
        for receiver in self._receivers:
            receiver.join(max(0.0, deadline - time.monotonic()))

    def tell(self, change: StatusChange) -> None:
        body = json.dumps(change._asdict()).encode()
        for receiver in self._receivers:
            receiver.tell(body)


class _Receiver:
    def __init__(self, url: str, send: Post, first_pause_s: float) -> None:
        self._url = url
        self._send = send
        self._first_pause_s = first_pause_s
        self._waiting: deque[bytes] = deque()
        self._changed = threading.Condition()
        self._is_stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self.sent = 0
        self.dropped = 0

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="ottla-webhook", daemon=True)
        self._thread.start()

    def begin_to_stop(self) -> None:
        self._is_stopping.set()
        with self._changed:
            self._changed.notify_all()

    def join(self, seconds: float) -> None:
        if self._thread is not None:
            self._thread.join(seconds)

    def tell(self, body: bytes) -> None:
        with self._changed:
            if len(self._waiting) >= QUEUE_MAX:
                self._waiting.popleft()
                self.dropped += 1
            self._waiting.append(body)
            self._changed.notify_all()

    def _run(self) -> None:
        while not self._is_stopping.is_set():
            with self._changed:
                while not self._waiting and not self._is_stopping.is_set():
                    self._changed.wait()
                if self._is_stopping.is_set():
                    return
                body = self._waiting.popleft()
            self._deliver(body)

    def _deliver(self, body: bytes) -> None:
        pause_s = self._first_pause_s
        for attempt in range(1, _TRIES_MAX + 1):
            try:
                self._send(self._url, body)
            except urllib.error.HTTPError as error:
                if 300 <= error.code < 400:
                    self._give_up(f"it answers {error.code} and points to another address: name that one")
                    return
                if 400 <= error.code < 500 and error.code not in (408, 429):
                    self._give_up(f"it answers {error.code}")
                    return
                why = f"it answers {error.code}"
            except Exception as error:  # an answer that is no HTTP is neither an OSError nor one of urllib's
                why = str(error) or type(error).__name__
            else:
                self.sent += 1
                return
            if attempt == _TRIES_MAX:
                self._give_up(why)
            elif self._is_stopping.wait(pause_s):
                return
            pause_s *= 2

    def _give_up(self, why: str) -> None:
        with self._changed:
            self.dropped += 1
        # Of the address only where it is: many have a secret in the rest.
        parts = urllib.parse.urlsplit(self._url)
        host = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        log.error("a webhook was not told of a change", extra={"url": host, "why": why})
