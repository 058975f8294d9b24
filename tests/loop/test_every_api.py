"""Nobody stalls the loop: the largest request of every API is answered a little at a time."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest

from ottla.broker.apis import APIS
from ottla.protocol.codec import Message
from ottla.testing import Broker
from tests.loop.largest import NARROW, WIDE, WIDE_PARTITIONS, largest_requests, narrow
from tests.support.loop_turns import TURN_S_MAX, LoopTurns
from tests.support.raw_client import ConnectionClosed, RawClient, request_frame


@pytest.fixture(scope="module")
def turns() -> Iterator[LoopTurns]:
    with LoopTurns() as watched:
        yield watched


@pytest.fixture(scope="module")
def broker(turns: LoopTurns) -> Iterator[Broker]:
    with Broker() as running:
        running.create_topic(WIDE, WIDE_PARTITIONS)
        for number in range(NARROW):
            running.create_topic(narrow(number))
        yield running


def test_every_api_is_among_them() -> None:
    asked = {type(message).__name__.removesuffix("Request") for _, message, _ in largest_requests()}
    assert asked == {api.name for api in APIS.values() if not api.for_brokers}


def test_no_turn_of_the_loop_is_long(broker: Broker, turns: LoopTurns) -> None:
    """One test for all: later requests find what earlier ones made. What takes too long is tried again: the first of
    its kind also compiles, and a virtual machine counts the time that it is not let run."""
    too_long = {}
    for what, message, version in largest_requests():
        for _ in range(5):
            turns.reset()
            ask(broker, message, version)
            if turns.worst_s < TURN_S_MAX:
                break
        else:
            too_long[what] = turns.worst
    assert not too_long


def ask(broker: Broker, message: Message, version: int) -> None:
    with RawClient.to(broker.bootstrap_servers, timeout_s=300) as client:
        frame = request_frame(message, version)
        client.sock.sendall(struct.pack(">i", len(frame)) + frame)
        try:
            client.receive_frame()
        except ConnectionClosed:
            raise AssertionError(f"the connection was closed on {type(message).__name__}") from None
