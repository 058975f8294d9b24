"""Changes reach webhooks, again if need be, and never hold up the monitor."""

from __future__ import annotations

import json
import logging
import socket
import threading
from email.message import Message
from http.client import BadStatusLine, LineTooLong
from urllib.error import HTTPError

import pytest

from ottla.common.errors import OttlaError
from ottla.monitoring.monitor import StatusChange
from ottla.monitoring.webhooks import QUEUE_MAX, Webhooks
from tests.support.elsewhere import Elsewhere, elsewhere
from tests.support.group_members import eventually

__all__ = ["elsewhere"]

_PATIENCE_S = 60.0


def _change(name: str) -> StatusChange:
    return StatusChange(1, "group", name, "OK", "ERROR", "because")


def _http_error(status: int) -> HTTPError:
    return HTTPError("http://here", status, "", Message(), None)


class Receiver:
    """Fails as often as it is told to, then takes what comes."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.got: list[str] = []
        self.tries = 0
        self.done = threading.Event()

    def __call__(self, url: str, body: bytes) -> None:
        self.tries += 1
        if self.failures:
            raise self.failures.pop(0)
        self.got.append(json.loads(body)["name"])
        if self.got[-1] == "last":
            self.done.set()


def _run(receiver: Receiver, *names: str) -> Webhooks:
    hooks = Webhooks(["http://here"], send=receiver, first_pause_s=0.001)
    hooks.start()
    for name in names:
        hooks.tell(_change(name))
    assert receiver.done.wait(_PATIENCE_S)
    hooks.stop()
    return hooks


def test_what_fails_is_tried_again_and_order_is_kept() -> None:
    receiver = Receiver(OSError("away"), _http_error(503), _http_error(429))
    hooks = _run(receiver, "first", "last")
    assert receiver.got == ["first", "last"]
    assert (receiver.tries, hooks.dropped) == (5, 0)


def test_what_is_refused_is_not_tried_again() -> None:
    receiver = Receiver(_http_error(404))
    hooks = _run(receiver, "first", "last")
    assert receiver.got == ["last"]
    assert (receiver.tries, hooks.dropped) == (2, 1)


def test_what_fails_for_long_is_given_up() -> None:
    receiver = Receiver(*(OSError("away") for _ in range(6)))
    hooks = _run(receiver, "first", "last")
    assert receiver.got == ["last"] and hooks.dropped == 1


def test_an_answer_that_is_no_http_is_a_failure_like_others() -> None:
    """It once ended the thread, and with it every alarm that came later."""
    receiver = Receiver(BadStatusLine("SSH-2.0"), LineTooLong("header line"), ValueError("what is this"))
    hooks = _run(receiver, "first", "last")
    assert receiver.got == ["first", "last"] and hooks.dropped == 0


def test_what_really_answers_without_http_is_tried_again() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            for _ in range(2):
                client, _ = server.accept()
                with client:
                    client.recv(65536)
                    client.sendall(b"SSH-2.0-nothing of the kind\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        hooks = Webhooks([f"http://127.0.0.1:{server.getsockname()[1]}/"], first_pause_s=0.001)
        hooks.start()
        hooks.tell(_change("first"))
        thread.join(_PATIENCE_S)
        assert not thread.is_alive()
        hooks.stop()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_one_that_points_elsewhere_is_not_taken_for_one_that_was_told(
    elsewhere: Elsewhere, caplog: pytest.LogCaptureFixture, status: int
) -> None:
    """To follow it would be a GET without the change, which is answered as if all were well."""
    elsewhere.status = status
    hooks = Webhooks([f"http://{elsewhere.address}/hook"], first_pause_s=0.001)
    hooks.start()
    try:
        hooks.tell(_change("a"))
        eventually(lambda: hooks.dropped + hooks.sent, lambda: "nothing came of it")
    finally:
        hooks.stop()
    assert (hooks.sent, hooks.dropped, elsewhere.shown) == (0, 1, [])
    assert [record.why for record in caplog.records] == [  # type: ignore[attr-defined]
        f"it answers {status} and points to another address: name that one"
    ]


def test_a_receiver_that_hangs_holds_up_no_other() -> None:
    hangs, reached = threading.Event(), threading.Event()

    def send(url: str, body: bytes) -> None:
        if url == "http://hangs":
            hangs.wait(_PATIENCE_S)
        elif json.loads(body)["name"] == "last":
            reached.set()

    hooks = Webhooks(["http://hangs", "http://here"], send=send)
    hooks.start()
    for number in range(QUEUE_MAX):
        hooks.tell(_change(str(number)))
    hooks.tell(_change("last"))
    assert reached.wait(_PATIENCE_S)
    hangs.set()
    hooks.stop()


def test_the_log_does_not_tell_the_secret_in_an_address(caplog: pytest.LogCaptureFixture) -> None:
    """Those of chats and pagers have one in their path: whoever knows it may post."""
    done = threading.Event()

    def send(url: str, body: bytes) -> None:
        if json.loads(body)["name"] == "last":
            done.set()
        raise _http_error(404)

    hooks = Webhooks(["https://me:pass@hooks.example:444/services/SECRET?key=SECRET"], send=send)
    with caplog.at_level(logging.ERROR, "ottla.monitor"):
        hooks.start()
        hooks.tell(_change("first"))
        hooks.tell(_change("last"))
        assert done.wait(_PATIENCE_S)
        hooks.stop()
    told = [str(vars(record)) for record in caplog.records]
    assert told and all("hooks.example:444" in one and "SECRET" not in one and "pass@" not in one for one in told)


def test_the_queue_is_bounded_and_the_oldest_go() -> None:
    hooks = Webhooks(["http://here"], send=Receiver())
    for number in range(QUEUE_MAX + 7):
        hooks.tell(_change(str(number)))
    assert hooks.dropped == 7


def test_a_webhook_is_a_url() -> None:
    with pytest.raises(OttlaError, match="expected http"):
        Webhooks(["here"])
