"""The steps of a batch, and how to end a driver between two of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ottla.client.producing import TransactionalProducer
from ottla.spark.pipeline.tables.collection import Tables
from ottla.spark.pipeline.tables.table import Table
from ottla.spark.sink.manifest import Manifests
from ottla.spark.sink.publishing import Publisher
from ottla.spark.sink.streaming import _BatchWriter
from ottla.spark.spool.files import SpooledBatch
from ottla.spark.spool.sending import SpoolTarget
from ottla.spark.spool.server import SpoolServer

Crash = Callable[[], None]
SetAttribute = Callable[[type, str, Any], None]
SENDING = "while tasks send to the spool"


class Countdown:
    """Ends the driver when a step is reached for the n-th time."""

    def __init__(self, crash: Crash, times: int) -> None:
        self._crash = crash
        self._left = times
        self._guard = threading.Lock()

    def __call__(self) -> None:
        with self._guard:
            self._left -= 1
            is_now = self._left == 0
        if is_now:
            self._crash()


# In the order in which a batch meets them: (class, method, whether it ends before the method or after it).
SEAMS: dict[str, tuple[type, str, bool]] = {
    "before the tables are read": (Tables, "_move_on", True),
    "while the tables are read": (Table, "_between", False),
    "after the tables, before the manifest": (Manifests, "write", True),
    "after the manifest, before Spark's log": (Tables, "_move_on", False),
    "after Spark's log and the plan": (_BatchWriter, "write", True),
    "after the partition counts": (_BatchWriter, "_partition_counts", False),
    SENDING: (SpooledBatch, "keep", True),
    "after the spool": (Publisher, "publish", True),
    "in an open transaction": (TransactionalProducer, "produce", False),
    "before the transaction's offsets": (TransactionalProducer, "commit_offsets", True),
    "before EndTxn": (TransactionalProducer, "commit", True),
    "after EndTxn": (TransactionalProducer, "commit", False),
    "before Spark's commit log": (_BatchWriter, "write", False),
}
# Those that are no call of ours: a file of the checkpoint appears.
FILES = {"right after Spark's log": "offsets", "after Spark's commit log": "commits"}


def install(seam: str, set_attribute: SetAttribute, crash: Crash, times: int, checkpoint: Path) -> None:
    """Let `crash` be called when a batch comes to this seam for the n-th time."""
    if seam in FILES:
        threading.Thread(target=_watch, args=(checkpoint / FILES[seam], times, crash), daemon=True).start()
        return
    if seam == SENDING:
        # Those that write their files themselves do not come by here.
        set_attribute(SpoolServer, "target", lambda spool, batch: SpoolTarget(spool.address, f"/elsewhere/{batch.id}"))
    owner, name, is_before = SEAMS[seam]
    method = getattr(owner, name)
    reached = Countdown(crash, times)

    def seamed(*arguments: Any, **named: Any) -> Any:
        if is_before:
            reached()
        result = method(*arguments, **named)
        if not is_before:
            reached()
        return result

    set_attribute(owner, name, seamed)


def _watch(folder: Path, times: int, crash: Crash) -> None:
    before = _files(folder)
    while len(_files(folder) - before) < times:
        time.sleep(0.0005)
    crash()


def _files(folder: Path) -> set[str]:
    return {one.name for one in folder.iterdir() if one.name.isdigit()} if folder.exists() else set()
