"""The states of all connectors, as the topic of statuses has them, and the part of it that this worker writes."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

from ottla.common.errors import OttlaError
from ottla.connect.storage.statuses import (
    UNASSIGNED,
    Pair,
    Status,
    StatusState,
    connector_record,
    task_record,
    topic_record,
)

_LOG = logging.getLogger("ottla.connect.board")


class Board:
    def __init__(self, state: StatusState, write: Callable[[Sequence[Pair]], None], worker: str) -> None:
        self._state = state
        self._write = write
        self._worker = worker
        # Of the group: who was told to run a connector later knows better.
        self.generation = 0

    def report(self, name: str, state: str, tasks: int | None, trace: str | None, version: str | None) -> None:
        """`tasks`: how many there are; None: none."""
        known = self._state.connectors.get(name)
        if known is not None and known.worker != self._worker and known.generation > self.generation:
            return
        status = Status(state, self._worker, self.generation, trace, version)
        records = [connector_record(name, status)]
        records += [task_record(name, number, status) for number in range(tasks or 0)]
        surplus = [number for number in self._state.tasks.get(name, {}) if number >= (tasks or 0)]
        records += [task_record(name, number, None) for number in surplus]
        self._send(records)

    def let_go(self, name: str) -> None:
        """It is stopped here, and not yet started elsewhere."""
        known = self._state.connectors.get(name)
        if known is not None and known.worker == self._worker:
            self.report(name, UNASSIGNED, len(self._state.tasks.get(name, {})), None, known.version)

    def forget_own(self, name: str) -> None:
        """It was deleted. One of the same name may be there again, whose state another worker tells."""
        known = self._state.connectors.get(name)
        if known is not None and known.worker == self._worker:
            self.forget(name)

    def forget(self, name: str) -> None:
        """It was deleted."""
        records = [connector_record(name, None)]
        records += [task_record(name, number, None) for number in self._state.tasks.get(name, {})]
        records += [topic_record(name, topic, None, 0) for topic in self._state.topics.get(name, {})]
        self._send(records)

    def uses(self, name: str, topics: Sequence[str]) -> None:
        now_ms = int(time.time() * 1000)
        known = self._state.topics.get(name, {})
        records = [topic_record(name, topic, 0, now_ms) for topic in topics if topic not in known]
        if records:
            self._send(records)

    def reset_topics(self, name: str) -> None:
        self._send([topic_record(name, topic, None, 0) for topic in self._state.topics.get(name, {})])

    def _send(self, records: Sequence[Pair]) -> None:
        """A state that cannot be written now is no reason to stop: the next one is."""
        if not records:
            return
        try:
            self._write(records)
        except (OttlaError, OSError) as error:
            _LOG.warning("states cannot be written now: %s", error)
