"""An HTTP server that sends everybody to another one, which should not be asked."""

from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest


class Elsewhere:
    """One that sends everybody to another address, which notes what it is shown."""

    def __init__(self) -> None:
        self.status = 302
        # What the other one answers.
        self.body = b"[]"
        # And this one, where it does not send anybody away.
        self.own_body = b""
        self.shown: list[str | None] = []
        place = self

        class Sends(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.rfile.read(int(self.headers.get("content-length", 0)))
                self.send_response(place.status)
                self.send_header("Location", f"http://127.0.0.1:{place._other.server_port}/subjects")
                self.send_header("Content-Length", str(len(place.own_body)))
                self.end_headers()
                self.wfile.write(place.own_body)

            do_POST = do_GET

            def log_message(self, *_: object) -> None:
                pass

        class Notes(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                place.shown.append(self.headers.get("authorization"))
                self.send_response(200)
                self.end_headers()
                self.wfile.write(place.body)

            do_POST = do_GET

            def log_message(self, *_: object) -> None:
                pass

        self._first = ThreadingHTTPServer(("127.0.0.1", 0), Sends)
        self._other = ThreadingHTTPServer(("127.0.0.1", 0), Notes)
        for server in (self._first, self._other):
            Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def address(self) -> str:
        """Of the one that sends everybody away."""
        return f"127.0.0.1:{self._first.server_port}"

    def stop(self) -> None:
        for server in (self._first, self._other):
            server.shutdown()
            server.server_close()


@pytest.fixture
def elsewhere() -> Iterator[Elsewhere]:
    made = Elsewhere()
    yield made
    made.stop()
