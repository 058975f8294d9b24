"""Connections to the cluster, lent to whoever asks it something: a client is used by one thread at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ottla.client.lookup import ClusterReader
from ottla.client.settings import ClientSettings

_KEPT_MAX = 6


class Link:
    """The same cluster, as one user."""

    def __init__(self, settings: ClientSettings) -> None:
        self.settings = settings
        self._idle: list[ClusterReader] = []
        self._lock = threading.Lock()
        self._is_closed = False

    @contextmanager
    def borrowed(self) -> Iterator[ClusterReader]:
        """What failed is not used again: an answer may still be on its way."""
        with self._lock:
            reader = self._idle.pop() if self._idle else ClusterReader(self.settings)
        try:
            yield reader
        except BaseException:
            reader.close()
            raise
        with self._lock:
            if len(self._idle) < _KEPT_MAX and not self._is_closed:
                reader.forget_leaders()
                self._idle.append(reader)
                return
        reader.close()

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for reader in idle:
            reader.close()
