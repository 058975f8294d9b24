"""PySpark's worker daemon without its garbage collection after every task, and without a needless traceback.

A worker collects between two tasks, before it is ready for the next one. With the modules that PySpark and PyArrow load
that takes tens of milliseconds, a large part of a small batch. Workers still collect as every Python process does.

Spark leaves a worker that was idle for a minute without a word. The worker prints a traceback of a broken pipe upon
that, to the terminal of a person who did nothing wrong. (Processes that plan a source print it all the same: Spark
starts them with a daemon of its own.)
"""

from __future__ import annotations

import sys
import traceback

import pyspark.daemon


class _NoCollection:
    """Stands in for the module `gc` inside of PySpark's daemon, and there only."""

    @staticmethod
    def collect() -> int:
        return 0


class _NoBrokenPipes:
    """Stands in for the module `traceback` there."""

    format_exc = staticmethod(traceback.format_exc)

    @staticmethod
    def print_exc() -> None:
        if not isinstance(sys.exc_info()[1], BrokenPipeError):
            traceback.print_exc()


if __name__ == "__main__":
    vars(pyspark.daemon)["gc"] = _NoCollection
    vars(pyspark.daemon)["traceback"] = _NoBrokenPipes
    pyspark.daemon.manager()
