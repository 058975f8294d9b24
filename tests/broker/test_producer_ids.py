"""Producer ids are handed out once, also to many who ask at the same time."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.broker.cluster.peers import PeerUnavailable
from ottla.broker.controller.producer_ids import BLOCK_SIZE, ProducerIds, blocks_of_controller
from ottla.broker.handlers.transactions import allocate_producer_ids
from ottla.common.errors import ApiError, ErrorCode
from ottla.metadata.image import ClusterImage, Registration
from ottla.protocol.messages import AllocateProducerIdsRequest, AllocateProducerIdsResponse


async def test_ids_come_from_blocks_and_never_twice() -> None:
    blocks: list[int] = []

    async def take_block(count: int) -> int:
        await asyncio.sleep(0.001)
        blocks.append(len(blocks) * count)
        return blocks[-1]

    ids = ProducerIds(take_block)
    taken = await asyncio.gather(*(ids.take() for _ in range(2 * BLOCK_SIZE + 1)))
    assert sorted(taken) == list(range(2 * BLOCK_SIZE + 1))
    assert len(blocks) == 3


async def test_a_block_that_cannot_be_had_is_asked_for_again() -> None:
    answers = iter([OSError("disk"), 5000])

    async def take_block(count: int) -> int:
        answer = next(answers)
        if isinstance(answer, OSError):
            raise answer
        return answer

    ids = ProducerIds(take_block)
    with pytest.raises(OSError, match="disk"):
        await ids.take()
    assert await ids.take() == 5000


# --- in a cluster


class Controller:
    """Broker 2 asks, broker 1 is the controller."""

    def __init__(self, is_controller: bool = True, **changes: Any) -> None:
        self.next = 0
        known = {1: Registration(3, is_active=True), 2: Registration(7, is_active=True)}
        image = replace(ClusterImage("c", registrations=known), **changes)
        self.broker: Any = SimpleNamespace(is_controller=is_controller, image=image, topics=self)
        self.away: Exception | None = None
        self.asked_by: Any = SimpleNamespace(node_id=2, broker_epoch=7, ask_controller=self.ask)

    async def take_producer_ids(self, count: int) -> int:
        self.next += count
        return self.next - count

    async def ask(self, request: AllocateProducerIdsRequest) -> AllocateProducerIdsResponse:
        if self.away is not None:
            raise self.away
        return await allocate_producer_ids.handle(self.broker, None, request)  # type: ignore[arg-type]


async def test_the_controller_gives_blocks_to_all_brokers() -> None:
    controller = Controller()
    one, other = ProducerIds(blocks_of_controller(controller.asked_by)), ProducerIds(controller.take_producer_ids)
    taken = [await ids.take() for ids in (one, other, one, other)]
    assert taken == [0, BLOCK_SIZE, 1, BLOCK_SIZE + 1]


@pytest.mark.parametrize(
    ("changes", "epoch", "expected"),
    [
        ({"is_controller": False}, 7, ErrorCode.NOT_CONTROLLER),
        ({}, 6, ErrorCode.STALE_BROKER_EPOCH),
        ({"registrations": {}}, 7, ErrorCode.BROKER_ID_NOT_REGISTERED),
    ],
)
async def test_only_the_controller_gives_ids_and_only_to_registered_brokers(
    changes: dict[str, Any], epoch: int, expected: ErrorCode
) -> None:
    controller = Controller(**changes)
    answer = await controller.ask(AllocateProducerIdsRequest(broker_id=2, broker_epoch=epoch))
    assert (answer.error_code, controller.next) == (expected, 0)
    controller.asked_by.broker_epoch = epoch
    with pytest.raises(ApiError) as refused:
        await ProducerIds(blocks_of_controller(controller.asked_by)).take()
    assert refused.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


@pytest.mark.parametrize("away", [PeerUnavailable("gone"), ApiError(ErrorCode.NOT_CONTROLLER)])
async def test_without_a_controller_producers_ask_again(away: Exception) -> None:
    controller = Controller()
    controller.away = away
    ids = ProducerIds(blocks_of_controller(controller.asked_by))
    with pytest.raises(ApiError) as refused:
        await ids.take()
    assert refused.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    controller.away = None
    assert await ids.take() == 0
