"""Changes reach webhooks, again if need be, and never hold up the monitor."""

from __future__ import annotations

import json
import threading
from email.message import Message
from urllib.error import HTTPError

import pytest

from ottla.common.errors import OttlaError
from ottla.monitoring.monitor import StatusChange
from ottla.monitoring.webhooks import QUEUE_MAX, Webhooks

_PATIENCE_S = 60.0


def _change(name: str) -> StatusChange:
    return StatusChange(1, "group", name, "OK", "ERROR", "because")


def _http_error(status: int) -> HTTPError:
    return HTTPError("http://here", status, "", Message(), None)


class Receiver:
    """Fails as often as it is told to, then takes what comes."""

    def __init__(self, *failures: OSError) -> None:
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


def test_the_queue_is_bounded_and_the_oldest_go() -> None:
    hooks = Webhooks(["http://here"], send=Receiver())
    for number in range(QUEUE_MAX + 7):
        hooks.tell(_change(str(number)))
    assert hooks.dropped == 7


def test_a_webhook_is_a_url() -> None:
    with pytest.raises(OttlaError, match="expected http"):
        Webhooks(["here"])
