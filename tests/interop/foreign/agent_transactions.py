"""Transactional producers of other languages behind the face that those of Python have."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from tests.interop.foreign.agents import Agent, AgentError
from tests.interop.foreign.clients import AgentClient, base64_text
from tests.support.transactional_libraries import Failed, Fenced, TransactionalLibrary

_FENCED = ("Fenced", "InvalidProducerEpoch", "INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED", "producer epoch")
_numbers = itertools.count(1)


class AgentTransactions(TransactionalLibrary):
    """A producer that lives in an agent."""

    def __init__(
        self, client: AgentClient | Agent, bootstrap: str, transactional_id: str, timeout_ms: int = 60_000
    ) -> None:
        super().__init__(bootstrap, transactional_id, timeout_ms)
        self._agent = client.agent if isinstance(client, AgentClient) else client
        self._name = f"{transactional_id}-{next(_numbers)}"

    def _call(self, op: str, **more: object) -> None:
        try:
            self._agent.call(op, producer=self._name, bootstrap=self.bootstrap, **more)
        except AgentError as error:
            if any(word in str(error) for word in _FENCED):
                raise Fenced(str(error)) from error
            raise Failed(str(error)) from error

    def open(self) -> None:
        self._call("txn_open", transactional_id=self.transactional_id, timeout_ms=self.timeout_ms)

    def begin(self) -> None:
        self._call("txn_begin")

    def send(self, topic: str, value: bytes, partition: int = 0, key: bytes | None = None) -> None:
        self._call("txn_send", topic=topic, partition=partition, value=base64_text(value))

    def offsets(self, group: str, offsets: Mapping[tuple[str, int], int]) -> None:
        for (topic, partition), offset in offsets.items():
            self._call("txn_offsets", group=group, topic=topic, partition=partition, offset=offset)

    def commit(self) -> None:
        self._call("txn_commit")

    def abort(self) -> None:
        self._call("txn_abort")

    def close(self) -> None:
        try:
            self._call("txn_close")
        except (Fenced, Failed):
            pass
