"""A micro-batch that is used more than once, computed once.

Computed for each use it may have other rows each time, and a row that is in both outputs or in neither is doubled or
lost. Keeping it in Spark's cache is not enough: a cached block that is lost with its executor is computed again without
a word. So the way to compute it is cut off once it is there (`localCheckpoint`): what is lost is missed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ottla.common.failures import Retriable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Spark's name for it, which is in the text of whatever error it arrives in.
_BLOCK_IS_LOST = "CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND"


class RowsLost(Retriable):
    """Rows that were kept are gone: the batch has to be computed from its start, all of it."""


@contextmanager
def computed_once(frame: DataFrame) -> Iterator[DataFrame]:
    """Raises RowsLost when a block of it was lost while it was used."""
    kept = frame.localCheckpoint()
    try:
        yield kept
    except Exception as error:
        if _BLOCK_IS_LOST in str(error):
            raise RowsLost("rows of a batch that were kept for its outputs are lost, as with an executor.") from None
        raise
    finally:
        _release(kept)


def _release(kept: DataFrame) -> None:
    """Now, and not when a garbage collection of the JVM comes to it. `unpersist` does not know it by this name."""
    context: Any = kept.sparkSession.sparkContext
    context._jsc.sc().unpersistRDD(kept._jdf.queryExecution().analyzed().rdd().id(), False)
