"""A well-behaved client that works all the while a test mistreats the broker: the one who must not notice.

    with Neighbour(broker):
        ...  # something hostile

Leaving the block checks that every record it produced was answered and read back in order, and that the broker did
not do much else in between.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from ottla.protocol.messages import CreateTopicsRequest
from ottla.records.record import read_records
from tests.support.process import BrokerProcess
from tests.support.raw_client import RawClient, batch_of

# What the broker may compute for others before it answers us. On a machine with much else to do the wall clock says
# little, so it only tells a hang.
STALL_CPU_S = 2.0
HANG_S = 25.0


class Neighbour:
    def __init__(self, broker: BrokerProcess, topic: str = "neighbour", pause_s: float = 0.01) -> None:
        self._broker = broker
        self._client = RawClient.to(broker.bootstrap, timeout_s=HANG_S)
        self._topic = topic
        self._pause_s = pause_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, name="neighbour", daemon=True)
        self.worst_cpu_s = 0.0
        self.rounds = 0
        self.failure: BaseException | None = None

    def __enter__(self) -> Self:
        wanted = CreateTopicsRequest.CreatableTopic(name=self._topic, num_partitions=1, replication_factor=1)
        self._client.call(CreateTopicsRequest(topics=[wanted], timeout_ms=10_000), 7)
        self._offset = self._client.produce(self._topic, batch_of(b"start")).base_offset + 1
        self._thread.start()
        return self

    def _work(self) -> None:
        try:
            while not self._stop.is_set():
                self._round()
                self.rounds += 1
                time.sleep(self._pause_s)
        except BaseException as error:
            self.failure = error

    def _round(self) -> None:
        value = b"%d" % self._offset
        line = self._timed(lambda: self._client.produce(self._topic, batch_of(value)))
        assert (line.error_code, line.base_offset) == (0, self._offset)
        line = self._timed(lambda: self._client.fetch(self._topic, self._offset))
        assert [one.value for one in read_records(line.records)] == [value]
        self._offset += 1

    def _timed(self, ask: Callable[[], Any]) -> Any:
        before = self._broker.cpu_seconds()
        answer = ask()
        self.worst_cpu_s = max(self.worst_cpu_s, self._broker.cpu_seconds() - before)
        return answer

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(60)
        self._client.close()
        if error is None:
            assert self.failure is None, f"the good client failed after {self.rounds} rounds: {self.failure!r}"
            assert not self._thread.is_alive(), "the good client waits for an answer for ever"
            assert self.rounds > 0
            assert self.worst_cpu_s < STALL_CPU_S, f"the good client waited for {self.worst_cpu_s:.1f} s of computing"
