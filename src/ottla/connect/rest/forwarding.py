"""Changes are the leader's: another worker passes them on, and waits while nobody leads, instead of answering 409."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import httpx
from starlette.responses import Response

from ottla.connect.worker.errors import NotLeader, Refused
from ottla.connect.worker.signing import SIGNATURE
from ottla.connect.worker.worker import Worker

_PATIENCE_S = 90.0
_PAUSE_S = 0.2
FORWARDED = "x-ottla-forwarded"


class Call:
    """A request as it came."""

    def __init__(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> None:
        self.method, self.path, self.body = method, path, body
        self.is_forwarded = FORWARDED in headers
        # Who asks has shown us who it is, and shows it to the leader.
        self.proofs = {name: headers[name] for name in ("authorization", SIGNATURE) if name in headers}


def by_leader(worker: Worker, client: httpx.Client, call: Call, change: Callable[[], Response]) -> Response:
    """`change` here, if we lead, else the leader's answer."""
    deadline_s = time.monotonic() + _PATIENCE_S
    while True:
        try:
            url = worker.wait_for_leader(max(0.0, deadline_s - time.monotonic()))
            if url is None:
                # What it looks at first must not change before it writes.
                with worker.changing:
                    return change()
            if not call.is_forwarded:
                told = _forwarded(client, url, call)
                # Whoever asks here next is to see what was done there.
                worker.config_topic.read_to_end()
                return told
        except NotLeader:
            pass
        except httpx.TransportError:
            pass  # it is going away: the group will know
        if time.monotonic() > deadline_s:
            raise Refused(500, "Request timed out: no worker leads the group now; see the log of the workers")
        time.sleep(_PAUSE_S)


def _forwarded(client: httpx.Client, url: str, call: Call) -> Response:
    headers = {FORWARDED: "1", "content-type": "application/json", **call.proofs}
    told = client.request(call.method, url + call.path, content=call.body, headers=headers)
    kept = {name: told.headers[name] for name in ("location", "content-type") if name in told.headers}
    return Response(told.content, told.status_code, kept)
