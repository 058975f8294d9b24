"""A transactional producer (protocol version 2, KIP-890): each transaction writes to several partitions and ends.

Two of them have the same transactional id. Whoever begins fences the other, which learns of it by what it does next:
from then on nothing of it counts, neither a record nor the end of a transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ottla.common.errors import ErrorCode
from ottla.common.ids import TopicPartition
from ottla.protocol import messages as m
from ottla.records.batch import TRANSACTIONAL_BIT
from ottla.records.record import Record, build_batch
from ottla.testing.simulation.clients.client import TRANSACTION, Client, TryAgain

if TYPE_CHECKING:
    from ottla.testing.simulation.world import World

_TRANSACTIONAL_ID = "payments"
_TIMEOUT_MS = 1_000
_TRANSACTION_MS = 4_000
# How many times longer than others one waits that comes now and then: seconds.
_RARELY = 20
# The transaction was ended by its coordinator, because it took too long, or cannot go on: it is done anew.
_OVER = (
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.TRANSACTION_ABORTABLE,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.UNKNOWN_PRODUCER_ID,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
)


class Identity(NamedTuple):
    producer_id: int
    epoch: int


class Lost(Exception):
    """The transaction cannot be ended by us any more."""


class Transactor(Client):
    def __init__(self, world: World, name: str, *, is_rare: bool = False) -> None:
        """`is_rare`: it comes now and then, as one that was started a second time."""
        super().__init__(world, name)
        self._is_rare = is_rare

    async def run(self) -> None:
        identity: Identity | None = None
        number = 0
        while not self.is_stopping:
            if self._is_rare and self.rng.random() < 0.5:
                await self.pause(_RARELY)
            number += 1
            identity = identity or await self._identify()
            count = min(len(self.world.partitions), 2)
            partitions = self.rng.sample(self.world.partitions, count)
            values = {partition: [f"{self.name} {number}.{at}".encode()] for at, partition in enumerate(partitions)}
            name = f"{self.name} {number}"
            is_commit = self.rng.random() < 0.7
            promises = self.world.promises
            promises.transactions[name] = (values, None)
            try:
                for partition in partitions:
                    await self._write(identity, partition, values[partition])
                # Until it is asked for nobody commits it.
                promises.transactions[name] = (values, None if is_commit else False)
                identity = await self._end(identity, is_commit)
                promises.transactions[name] = (values, is_commit)
                self.say(f"transaction {number} is {'committed' if is_commit else 'aborted'}")
            except Lost as error:
                self.say(f"transaction {number} is lost: {error}")
                identity = None
            await self.pause(3)

    async def _identify(self) -> Identity:
        while True:
            try:
                request = m.InitProducerIdRequest(
                    transactional_id=_TRANSACTIONAL_ID,
                    transaction_timeout_ms=_TRANSACTION_MS,
                    producer_id=-1,
                    producer_epoch=-1,
                )
                answer: m.InitProducerIdResponse = await self.ask(await self._coordinator(), request)
                self.check(answer.error_code, "a transactional id")
                identity = Identity(answer.producer_id, answer.producer_epoch)
                self.world.promises.identified(_TRANSACTIONAL_ID, identity)
                return identity
            except TryAgain:
                self.forget_coordinator(_TRANSACTIONAL_ID, TRANSACTION)
                await self.pause()

    async def _coordinator(self) -> int:
        return await self.coordinator(_TRANSACTIONAL_ID, TRANSACTION)

    async def _write(self, identity: Identity, partition: TopicPartition, values: list[bytes]) -> None:
        batch = build_batch(
            [Record(number, 1_700_000_000_000, None, value) for number, value in enumerate(values)],
            producer_id=identity.producer_id,
            producer_epoch=identity.epoch,
            base_sequence=0,
            attributes=TRANSACTIONAL_BIT,
        )
        while True:
            try:
                await self._produce(identity, partition, bytes(batch))
                return
            except TryAgain:
                self.forget_leader(partition)
                await self.pause()

    async def _produce(self, identity: Identity, partition: TopicPartition, batch: bytes) -> None:
        topic_id = await self.topic_id(partition.topic)
        leader, _ = await self.leader(partition)
        data = m.ProduceRequest
        rows = [data.PartitionProduceData(index=partition.partition, records=batch)]
        topic = data.TopicProduceData(topic_id=topic_id, partition_data=rows)
        request = data(transactional_id=_TRANSACTIONAL_ID, acks=-1, timeout_ms=_TIMEOUT_MS, topic_data=[topic])
        last = self.world.promises.last_identity(_TRANSACTIONAL_ID)
        answer: m.ProduceResponse = await self.ask(leader, request)
        ((row,),) = [topic.partition_responses for topic in answer.responses]
        if self._check(row.error_code, f"writing to {partition}"):
            self.world.promises.taken_from(self.name, identity, last, f"a record for {partition}")

    async def _end(self, identity: Identity, is_commit: bool) -> Identity:
        while True:
            try:
                request = m.EndTxnRequest(
                    transactional_id=_TRANSACTIONAL_ID,
                    producer_id=identity.producer_id,
                    producer_epoch=identity.epoch,
                    committed=is_commit,
                )
                coordinator = await self._coordinator()
                last = self.world.promises.last_identity(_TRANSACTIONAL_ID)
                answer: m.EndTxnResponse = await self.ask(coordinator, request)
                self._check(answer.error_code, "ending a transaction")
                self.world.promises.taken_from(self.name, identity, last, "the end of a transaction")
                return Identity(answer.producer_id, answer.producer_epoch)
            except TryAgain:
                self.forget_coordinator(_TRANSACTIONAL_ID, TRANSACTION)
                await self.pause()

    def _check(self, code: int, what: str) -> bool:
        """Whether it was done now; not if it had been done before. Raises Lost and TryAgain."""
        if code in _OVER:
            raise Lost(f"{what}: {ErrorCode(code).name}")
        if code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            return False
        self.check(code, what)
        return True
