"""Visitors between their requests: who logged in, the token that their forms carry, and what they are to be told.

A session is a random name in a cookie that scripts cannot read. Everything else about it stays here, so a restart of
the console logs everybody out.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time
from collections import OrderedDict, deque
from dataclasses import dataclass, field

from ottla.console.cluster.link import Link

SESSIONS_MAX = 5_000
IDLE_S_MAX = 8 * 3600.0
_FAILURES_MAX = 5
_WINDOW_S = 300.0
_WATCHED_MAX = 10_000


@dataclass
class Session:
    id: str
    csrf: str
    user: str | None = None
    role: str = "viewer"
    may_unmask: bool = False
    # Of somebody who logged in at the cluster: what they do is done in their name.
    link: Link | None = None
    client: dict[str, str] | None = None
    last_s: float = 0.0
    notices: deque[tuple[str, str]] = field(default_factory=lambda: deque(maxlen=5))

    def is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self.csrf.encode())


class Sessions:
    def __init__(self) -> None:
        self._known: OrderedDict[str, Session] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, name: str | None) -> Session | None:
        with self._lock:
            found = self._known.get(name or "")
            if found is None:
                return None
            if time.monotonic() - found.last_s > IDLE_S_MAX:
                self._drop(found)
                return None
            found.last_s = time.monotonic()
            self._known.move_to_end(found.id)
            return found

    def begin(self) -> Session:
        """A new name for every login: one that somebody planted before it is worth nothing after it."""
        session = Session(secrets.token_urlsafe(32), secrets.token_urlsafe(32), last_s=time.monotonic())
        with self._lock:
            self._known[session.id] = session
            while len(self._known) > SESSIONS_MAX:
                # Strangers first: they lose nothing but a token.
                oldest = next((one for one in self._known.values() if one.user is None), None)
                self._drop(oldest or next(iter(self._known.values())))
        return session

    def end(self, session: Session) -> None:
        with self._lock:
            self._drop(session)

    def _drop(self, session: Session) -> None:
        self._known.pop(session.id, None)
        if session.link is not None:
            session.link.close()


class LoginLimit:
    """Five wrong passwords for a name or from an address, then nothing for five minutes after the first of them.

    An attempt is counted before it is judged, so that those which come at the same time are no more than five, too.
    """

    def __init__(self) -> None:
        self._failures: OrderedDict[str, deque[float]] = OrderedDict()
        self._lock = threading.Lock()

    def attempt(self, *keys: str) -> float:
        """Seconds to wait; 0: it may be judged, and counts as wrong unless `succeeded` or `unjudged` follows."""
        now = time.monotonic()
        names = [_short(key) for key in keys]
        with self._lock:
            waits = [
                row[0] + _WINDOW_S - now
                for name in names
                if (row := self._failures.get(name)) and len(row) >= _FAILURES_MAX and row[0] + _WINDOW_S > now
            ]
            if waits:
                return max(waits)
            for name in names:
                row = self._failures.setdefault(name, deque(maxlen=_FAILURES_MAX))
                while row and row[0] + _WINDOW_S <= now:
                    row.popleft()
                row.append(now)
                self._failures.move_to_end(name)
            while len(self._failures) > _WATCHED_MAX:
                self._failures.popitem(last=False)
        return 0.0

    def unjudged(self, *keys: str) -> None:
        """Nobody could say whether it was right: the last attempt of each is taken back."""
        with self._lock:
            for name in map(_short, keys):
                if row := self._failures.get(name):
                    row.pop()

    def succeeded(self, *keys: str) -> None:
        with self._lock:
            for key in map(_short, keys):
                self._failures.pop(key, None)


def _short(key: str) -> str:
    """A name may be as long as a form."""
    return hashlib.sha256(key.encode(errors="replace")).hexdigest()
