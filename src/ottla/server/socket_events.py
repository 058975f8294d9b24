"""What a connection wants to hear of its socket, and the poller's knowledge of it."""

from __future__ import annotations

from ottla.server.poller import HANG_UP, READ, WRITE, Poller, Watched


class SocketEvents:
    __slots__ = ("_fd", "_poller", "_watched", "has_hung_up", "is_reading", "is_writing")

    def __init__(self, poller: Poller, fd: int, watched: Watched) -> None:
        self._poller = poller
        self._fd = fd
        self._watched = watched
        self.is_reading = True
        self.is_writing = False
        # The client will say no more, which need not be told again.
        self.has_hung_up = False
        poller.watch(fd, watched, READ)

    def read(self) -> None:
        self.is_reading = True
        self._update()

    def pause_reading(self) -> None:
        self.is_reading = False
        self._update()

    def hang_up(self) -> None:
        self.has_hung_up = True
        self._update()

    def write(self, wanted: bool) -> None:
        self.is_writing = wanted
        self._update()

    def end(self) -> None:
        self._poller.forget(self._fd)
        del self._watched  # they would hold one another, and nobody looks for such pairs often (`garbage.py`)

    def _update(self) -> None:
        events = WRITE if self.is_writing else 0
        if self.is_reading:
            events |= READ
        elif not self.has_hung_up:
            events |= HANG_UP
        if events:
            self._poller.change(self._fd, self._watched, events)
        else:
            self._poller.forget(self._fd)  # a broken connection is told again and again to whoever is watched
