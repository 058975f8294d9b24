"""docs/architecture.md, hop by hop: the files that it says a request goes through are those that it goes through, in
that order."""

from __future__ import annotations

import asyncio
import re
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from ottla.protocol import messages as m
from tests.replication.cluster import Cluster
from tests.support.loop_broker import LoopBroker
from tests.support.manual_clock import ManualClock
from tests.support.raw_client import batch_of, fetch_request, produce_request
from tests.support.transaction_desk import Desk
from tests.support.transactional_client import end_request

PAGE = (Path(__file__).parents[2] / "docs" / "architecture.md").read_text()
# What stands directly behind an arrow; between words it is something that happens sometimes.
HOP = re.compile(
    r"(?:\*\*: |-> (?:at the (?:leader|follower), [a-z ,]+|back in |once the decision is committed )?)`([a-z_/]+\.py)`"
)
# Sockets are where these tests have none.
SENT = ("server/output_queue.py", "broker/cluster/peers.py")


def hops_of(path: str) -> list[str]:
    (paragraph,) = re.findall(rf"^\*\*{path}\*\*: .*?(?=\n\n)", PAGE, re.M | re.S)
    return [hop for hop in HOP.findall(" ".join(paragraph.split())) if hop not in SENT]


async def entered(asked: Awaitable[Any]) -> list[str]:
    files: list[str] = []

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and (not files or files[-1] != frame.f_code.co_filename):
            files.append(frame.f_code.co_filename)

    sys.setprofile(note)
    try:
        await asked
    finally:
        sys.setprofile(None)
    return files


async def produce(desk: Desk) -> list[str]:
    return await entered(desk.produce(await desk.init(), b"x"))


async def fetch(desk: Desk) -> list[str]:
    return await entered(desk.broker.call(fetch_request([("data", 0, 0)], max_wait_ms=0), 12))


async def join(desk: Desk) -> list[str]:
    protocol = m.JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"")
    asked = m.JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[protocol],
    )
    await desk.ask(m.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4)
    return await entered(desk.ask(asked, 3))


async def end(desk: Desk) -> list[str]:
    who = await desk.init()
    await desk.produce(who, b"x")
    return await entered(desk.ask(end_request("t", who, True), 5))


def left_out(path: str, way: list[str]) -> list[str]:
    """The hops of the page that were not met, in its order, on the way."""
    hops, files = hops_of(path), iter(way)
    assert len(hops) >= 4
    return [hop for hop in hops if not any(file.endswith(f"/{hop}") for file in files)]


@pytest.mark.parametrize(
    ("path", "asked"), [("A produce", produce), ("A fetch", fetch), ("A JoinGroup", join), ("An EndTxn", end)]
)
async def test_a_request_goes_the_way_that_the_page_says(
    path: str, asked: Callable[[Desk], Awaitable[list[str]]], tmp_path: Path
) -> None:
    clock = ManualClock(time.time_ns() // 1_000_000)
    async with LoopBroker(tmp_path, {"group.initial.rebalance.delay.ms": "0"}, clock=clock) as broker:
        await broker.create_topic("data")
        assert not left_out(path, await asked(Desk(broker)))


async def test_a_follower_fetches_the_way_that_the_page_says(tmp_path: Path) -> None:
    async with Cluster(tmp_path, 2) as cluster:
        cluster.create_topic(replicas=[(1, 2)])
        request = produce_request("topic", batch_of(b"x"))
        # Followers fetch in tasks of their own: committed is what they have fetched, and with the next fetch have told.
        way = await entered(asyncio.wait_for(cluster.nodes[1].call(request, 9), 60))
    assert not left_out("A fetch by a follower", way)
