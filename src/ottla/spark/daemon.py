"""PySpark's worker daemon without its garbage collection after every task.

A worker collects between two tasks, before it is ready for the next one. With the modules that PySpark and PyArrow load
that takes tens of milliseconds, a large part of a small batch. Workers still collect as every Python process does.
"""

from __future__ import annotations

import pyspark.daemon


class _NoCollection:
    """Stands in for the module `gc` inside of PySpark's daemon, and there only."""

    @staticmethod
    def collect() -> int:
        return 0


if __name__ == "__main__":
    vars(pyspark.daemon)["gc"] = _NoCollection
    pyspark.daemon.manager()
