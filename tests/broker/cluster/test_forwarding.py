"""A request for the controller that waits while one is elected."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from ottla.broker.broker import Broker
from ottla.broker.cluster.forwarding import Forwarding
from ottla.broker.context import RequestContext


class ElectedMeanwhile:
    """A broker that becomes the controller while a client's request waits for one."""

    node_id = 1
    is_clustered = True
    is_store_reached = True
    config = SimpleNamespace(listener_of_brokers=SimpleNamespace(name="BROKERS"))

    def __init__(self) -> None:
        self.is_controller = False
        self.image = SimpleNamespace(controller=2, present=frozenset({1}))
        self.now_ms = 0
        self.clock = SimpleNamespace(monotonic_ms=lambda: self.now_ms)
        self.timers = self
        self.turns = SimpleNamespace(start=_run)

    async def sleep(self, ms: int) -> None:
        self.now_ms += ms
        self.is_controller = True

    async def answer_enclosed(self, context: RequestContext, frame: bytes) -> bytes:
        return b"answered here: " + frame


async def _run(steps: Any) -> Any:
    """What a handler answers that refuses before its first step."""
    try:
        next(steps)
    except StopIteration as ended:
        return ended.value
    raise AssertionError("it was not refused")


async def test_a_broker_that_is_elected_while_a_request_waits_answers_it_itself() -> None:
    broker = ElectedMeanwhile()
    context = RequestContext(19, 7, 0, None, "127.0.0.1", "CLIENTS", 0)
    answer = await Forwarding(cast(Broker, broker)).forward(context, b"create a topic")
    assert answer == b"answered here: create a topic"
    assert broker.now_ms == 50, "it does not wait until its patience is at an end"
