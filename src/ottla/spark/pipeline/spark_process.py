"""The JVM beside us: started with its output going to a file, and given up when it is gone."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG_BYTES_MAX = 16 * 1024 * 1024


def open_session(app: str, master: str, conf: dict[str, str], log: Path) -> SparkSession:
    """The JVM and its Python workers inherit what our output is while they start: a log file, not the live line."""
    import ottla.spark

    # Py4J tells at length of a JVM that went away, which the runner tells in a sentence.
    logging.basicConfig(filename=log, level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    stack_traces_to(log)
    with _own_signals(), _output_to(log):
        return ottla.spark.session(app=app, master=master, **conf)


def stack_traces_to(log: Path) -> None:
    """PySpark prints what is wrong with a query to stderr, with the JVM's stack trace; we tell it in a sentence."""
    from pyspark.logger import PySparkLogger

    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        logger = PySparkLogger.getLogger(name)
        logger.handlers.clear()
        logger.addHandler(logging.FileHandler(log))


def close_session(spark: Any) -> None:
    """Also when there is no JVM any more, after which PySpark would go on using it."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    gateway = SparkContext._gateway
    with suppress(Exception):
        spark.stop()
    if gateway is None or _answers(gateway):
        return
    with suppress(Exception):
        gateway.shutdown()
    SparkContext._gateway = None
    SparkContext._jvm = None
    SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = None


def _answers(gateway: Any) -> bool:
    try:
        gateway.jvm.java.lang.System.currentTimeMillis()
    except Exception:
        return False
    return True


@contextmanager
def _own_signals() -> Iterator[None]:
    """A SparkContext puts a handler of its own for Ctrl-C, which ends the program at once, in the place of ours."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ours = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, ours)


@contextmanager
def _output_to(log: Path) -> Iterator[None]:
    if log.exists() and log.stat().st_size > _LOG_BYTES_MAX:
        log.replace(log.with_suffix(".log.1"))
    sys.stdout.flush()
    sys.stderr.flush()
    ours = os.dup(1), os.dup(2)
    target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.dup2(target, 1)
        os.dup2(target, 2)
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for saved, number in zip(ours, (1, 2), strict=True):
            os.dup2(saved, number)
            os.close(saved)
        os.close(target)
