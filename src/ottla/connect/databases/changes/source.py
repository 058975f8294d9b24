"""What the sources of change data capture have in common: one session that is kept as long as it is read in order."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Protocol

from ottla.connect.api.plugins import Offset, Partition, Read, Source, check_numbers


class Session(Protocol):
    # Of the piece that was taken last.
    offset: Offset | None

    def next(self) -> Read | None:
        """The next piece; None if there is none for now."""

    def published(self, offset: Offset) -> None: ...

    def close(self) -> None: ...


class ChangeSource(Source):
    reads_on_driver: ClassVar[bool] = True

    def __init__(self, config: Mapping[str, str]) -> None:
        super().__init__(config)
        self._session: Session | None = None

    @abstractmethod
    def session(self, offset: Offset | None) -> Session: ...

    def partitions(self, most: int) -> Sequence[Partition]:
        return [{"server": self.settings["topic.prefix"]}]

    def read(self, partition: Partition, offset: Offset | None) -> Iterator[Read]:
        try:
            session = self._at(offset)
            while (piece := session.next()) is not None:
                yield piece
        except GeneratorExit:
            # The worker has enough for now: the session stands behind what it has taken.
            raise
        except BaseException:
            self.close()
            raise

    def _at(self, offset: Offset | None) -> Session:
        if self._session is None or not is_same(self._session.offset, offset):
            self.close()
            self._session = self.session(offset)
        return self._session

    def check_offset(self, partition: Partition, offset: Offset) -> str | None:
        """Of what all databases have."""
        if dict(partition) != (only := {"server": self.settings["topic.prefix"]}):
            return f"the partition must be {json.dumps(only)}"
        tables = offset.get("tables", [])
        if not isinstance(tables, list) or not all(isinstance(table, str) for table in tables):
            return "'tables' must be a list of names"
        return check_numbers(offset, "tx", "changes")

    def published(self, partition: Partition, offset: Offset) -> None:
        if self._session is not None:
            try:
                self._session.published(offset)
            except BaseException:
                self.close()
                raise

    def close(self) -> None:
        if self._session is not None:
            session, self._session = self._session, None
            session.close()


def is_same(one: Offset | None, other: Offset | None) -> bool:
    """Offsets that were in Kafka have lists where ours may have tuples."""
    return _text(one) == _text(other)


def _text(offset: Any) -> str:
    return json.dumps(offset, sort_keys=True)
