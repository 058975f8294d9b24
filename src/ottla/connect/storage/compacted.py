"""A compacted topic that is followed from its start: each record is handed on once, in the order of its partition.

`read_to_end` returns when everything is handed on that anybody had written when it was called, what transactions hold
open included: it waits until they are decided.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import replace

from pyspark.sql.pandas.types import to_arrow_schema

from ottla.client.cluster import ClusterClient
from ottla.client.fetching import OffsetRange
from ottla.client.lookup import EARLIEST, LATEST, ClusterReader
from ottla.client.retrying import Deadline
from ottla.client.settings import ClientSettings
from ottla.common.errors import OttlaError
from ottla.common.failures import Retriable
from ottla.common.ids import TopicPartition
from ottla.connect.storage.topics import TopicPlan, ensure
from ottla.spark.source.datasource import OttlaDataSource
from ottla.spark.source.reading import read_ranges

_POLL_S = 0.2
_DECIDED_S_MAX = 90.0
_LOG = logging.getLogger("ottla.connect.storage")
_SCHEMA = to_arrow_schema(OttlaDataSource({}).schema(), timezone="UTC")

# Key, value. Called by whoever reads, one at a time.
Apply = Callable[[bytes | None, bytes | None], None]


class CompactedTopic:
    def __init__(self, settings: ClientSettings, plan: TopicPlan, apply: Apply) -> None:
        self._plan = plan
        self._apply = apply
        self._committed = ClusterReader(replace(settings, is_committed_only=True))
        self._written = ClusterReader(replace(settings, is_committed_only=False))
        self._guard = threading.Lock()
        self._positions: dict[TopicPartition, int] = {}
        self._is_stopping = threading.Event()
        self._thread = threading.Thread(target=self._follow, name=f"ottla-connect-{plan.name}", daemon=True)

    @property
    def name(self) -> str:
        return self._plan.name

    @property
    def partitions(self) -> int:
        return len(self._positions)

    def start(self) -> None:
        """Makes the topic, if it is not there, and reads all of it. Raises OttlaError."""
        with ClusterClient(self._written.settings.address) as cluster:
            ensure(cluster, self._plan)
        with self._guard:
            numbers = self._committed.partitions([self.name])[self.name]
            places = [TopicPartition(self.name, number) for number in numbers]
            self._positions = self._committed.offsets(dict.fromkeys(places, EARLIEST))
        self.read_to_end()
        self._thread.start()

    def stop(self) -> None:
        self._is_stopping.set()
        if self._thread.ident is not None:
            self._thread.join()
        self._committed.close()
        self._written.close()

    def read_to_end(self) -> None:
        """Raises OttlaError."""
        with self._guard:
            target = self._written.offsets(dict.fromkeys(self._positions, LATEST))
            deadline = Deadline(_DECIDED_S_MAX)
            while True:
                self._advance()
                if all(self._positions[place] >= end for place, end in target.items()):
                    return
                if not deadline.pause():
                    raise Retriable(f"a transaction in '{self.name}' stays open: see `ottla txn list`.")

    def _follow(self) -> None:
        while not self._is_stopping.wait(_POLL_S):
            try:
                with self._guard:
                    self._advance()
            except (OttlaError, OSError) as error:
                _LOG.warning("the topic '%s' cannot be read now: %s", self.name, error)
            except Exception:
                # Nobody would notice that this thread is gone, and the worker would know nothing new any more.
                _LOG.exception("the topic '%s' cannot be read now", self.name)

    def _advance(self) -> None:
        ends = self._committed.offsets(dict.fromkeys(self._positions, LATEST))
        ranges = [OffsetRange(*place, self._positions[place], end) for place, end in ends.items()]
        ranges = [one for one in ranges if one.size > 0]
        if not ranges:
            return
        # What was cleaned away meanwhile has a later record under its key.
        for rows in read_ranges(self._committed, ranges, _SCHEMA, _LOG.debug, with_headers=False):
            for key, value in zip(rows.column(0).to_pylist(), rows.column(1).to_pylist(), strict=True):
                self._apply(key, value)
        self._positions.update(ends)
