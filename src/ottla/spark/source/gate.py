"""The gate: where a stream that has something new waits until the tables are up to date.

Spark asks a stream how far its next batch reads before it writes that down and plans the batch. The stream, in a
process beside the driver, knocks then, and the driver reads what is new in the tables. Tables are asked how far they
are after the streams: what was in a table before a record came into a stream is there when the two are joined.
"""

from __future__ import annotations

import json
import secrets
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener, answer_challenge, deliver_challenge

from ottla.common.errors import OttlaError
from ottla.common.failures import Failure, Retriable, failure_in

# The option of a stream that has the gate's address. Spark keeps what is called so out of its logs.
TOKEN = "ottla.gate.token"
_HOST = "127.0.0.1"
_MESSAGE_BYTES_MAX = 64 * 1024


class Gate:
    """The driver's side."""

    def __init__(self, before_batch: Callable[[], bool]) -> None:
        """`before_batch` returns when a batch may begin: True, or False if it never has anything to do."""
        self._before_batch = before_batch
        self._listener = Listener((_HOST, 0))
        self._key = secrets.token_bytes(32)
        self._port = int(self._listener.address[1])
        self._is_closed = False
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def token(self) -> str:
        return f"{self._port}:{self._key.hex()}"

    def _serve(self) -> None:
        while not self._is_closed:
            with suppress(OSError):
                threading.Thread(target=self._answer, args=(self._listener.accept(),), daemon=True).start()

    def _answer(self, connection: Connection) -> None:
        with connection, suppress(EOFError, OSError, AuthenticationError):
            deliver_challenge(connection, self._key)
            answer_challenge(connection, self._key)
            while connection.recv_bytes(_MESSAGE_BYTES_MAX):
                connection.send_bytes(json.dumps(self._open()).encode())

    def _open(self) -> dict[str, object]:
        try:
            return {"again": self._before_batch()}
        except OttlaError as error:
            return {"problem": str(error), "passes": failure_in(error) is Failure.RETRIABLE}
        except Exception as error:  # the driver has it, and can judge it better
            return {"problem": f"a table cannot be read: {type(error).__name__}.", "passes": False}

    def close(self) -> None:
        """As often as you like."""
        if not self._is_closed:
            self._is_closed = True
            with suppress(OSError):
                socket.create_connection((_HOST, self._port), 1).close()  # wakes the thread that accepts
            self._listener.close()


class Knocker:
    """A stream's side."""

    def __init__(self, token: str | None) -> None:
        self._token = token
        self._connection: Connection | None = None

    def knock(self) -> None:
        """Returns when the batch may begin. Raises OttlaError with what the driver says is in its way."""
        if self._token is None:
            return
        try:
            answer = self._ask(self._token)
        except (EOFError, OSError, AuthenticationError):
            raise Retriable("the driver of this query does not answer: it is being stopped, or gone.") from None
        if problem := answer.get("problem"):
            raise Retriable(problem) if answer["passes"] else OttlaError(problem)
        if not answer["again"]:
            self._token = None

    def _ask(self, token: str) -> dict[str, str]:
        if self._connection is None:
            port, _, key = token.partition(":")
            self._connection = Client((_HOST, int(port)), authkey=bytes.fromhex(key))
        self._connection.send_bytes(b"knock")
        answer: dict[str, str] = json.loads(self._connection.recv_bytes(_MESSAGE_BYTES_MAX))
        return answer

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
