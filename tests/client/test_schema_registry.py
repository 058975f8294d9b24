"""What our client of a registry makes of answers that no registry of ours gives."""

from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from ottla.client.schema_registry import Refused, RegistryClient


class Elsewhere:
    """One that sends everybody to another address, which notes what it is shown."""

    def __init__(self) -> None:
        self.status = 302
        self.shown: list[str | None] = []
        place = self

        class Sends(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(place.status)
                self.send_header("Location", f"http://127.0.0.1:{place._other.server_port}/subjects")
                self.send_header("Content-Length", "0")
                self.end_headers()

            do_POST = do_GET

            def log_message(self, *_: object) -> None:
                pass

        class Notes(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                place.shown.append(self.headers.get("authorization"))
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b"[]")

            def log_message(self, *_: object) -> None:
                pass

        self._first = ThreadingHTTPServer(("127.0.0.1", 0), Sends)
        self._other = ThreadingHTTPServer(("127.0.0.1", 0), Notes)
        for server in (self._first, self._other):
            Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        self.client = RegistryClient(f"http://ada:secret@127.0.0.1:{self._first.server_port}")

    def stop(self) -> None:
        for server in (self._first, self._other):
            server.shutdown()
            server.server_close()


@pytest.fixture
def elsewhere() -> Iterator[Elsewhere]:
    made = Elsewhere()
    yield made
    made.stop()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_login_is_not_taken_to_where_an_answer_points(elsewhere: Elsewhere, status: int) -> None:
    elsewhere.status = status
    with pytest.raises(Refused, match=r"sends us to http://127\.0\.0\.1:\d+/subjects") as found:
        elsewhere.client.get("subjects")
    assert found.value.code == status
    with pytest.raises(Refused, match="sends us to"):
        elsewhere.client.post({}, "subjects")
    assert elsewhere.shown == []
