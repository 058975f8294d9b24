"""Producer ids, each given out once in the life of the cluster.

A block of ids is taken from the metadata store, durably, before the first of them is given out; a crash loses the rest
of the block and repeats nothing. 1,000 ids cost one fsync. In a cluster the controller takes the blocks, for whoever
asks (AllocateProducerIds).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from ottla.broker.cluster.peers import PeerUnavailable
from ottla.common.errors import ApiError, ErrorCode
from ottla.protocol.messages import AllocateProducerIdsRequest, AllocateProducerIdsResponse

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

BLOCK_SIZE = 1000


class ProducerIds:
    def __init__(self, take_block: Callable[[int], Awaitable[int]]) -> None:
        """`take_block(count)` gives the first of `count` ids that nobody else will ever get."""
        self._take_block = take_block
        self._next = self._end = 0
        self._refilling = asyncio.Lock()

    async def take(self) -> int:
        while self._next == self._end:
            async with self._refilling:
                if self._next == self._end:  # nobody refilled it while we waited
                    self._next = await self._take_block(BLOCK_SIZE)
                    self._end = self._next + BLOCK_SIZE
        self._next += 1
        return self._next - 1


def blocks_of_controller(broker: Broker) -> Callable[[int], Awaitable[int]]:
    """`take_block` of a broker in a cluster. As Kafka's, one that gets no block says COORDINATOR_LOAD_IN_PROGRESS: the
    producer asks again."""

    async def take_block(count: int) -> int:
        request = AllocateProducerIdsRequest(broker_id=broker.node_id, broker_epoch=broker.broker_epoch)
        try:
            block: AllocateProducerIdsResponse = await broker.ask_controller(request)
        except (PeerUnavailable, ApiError) as error:
            raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, str(error)) from error
        if block.error_code or block.producer_id_len < count:
            why = ErrorCode(block.error_code).name
            raise ApiError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"the controller gives no producer ids: {why}")
        return block.producer_id_start

    return take_block
