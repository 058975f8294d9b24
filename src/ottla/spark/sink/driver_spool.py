"""The one spool of a driver, for all queries and writes of its sessions: one port, so that one can be opened for it.

It lives in the process that has the session: a write is planned and committed in processes that come and go.
"""

from __future__ import annotations

import atexit
import tempfile
import threading
from typing import TYPE_CHECKING, Any

from ottla.common.errors import OttlaError
from ottla.spark.spool.server import SpoolServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOST, BIND, PORT, FOLDER = (
    "spark.driver.host",
    "spark.driver.bindAddress",
    "spark.ottla.spool.port",
    "spark.ottla.spool.dir",
)
_guard = threading.Lock()
_running: tuple[Any, SpoolServer] | None = None


def driver_spool(spark: SparkSession) -> SpoolServer:
    """Started for the first who asks, and there for as long as the SparkContext is the one of this process. Raises
    OttlaError when it cannot listen."""
    global _running
    context = spark.sparkContext
    with _guard:
        if _running is not None:
            if _running[0] is context and _running[1].is_running:
                return _running[1]
            _running[1].close()
            _running = None
        server = _start(context)
        _running = context, server
        return server


def _start(context: Any) -> SpoolServer:
    conf = context.getConf()
    host = conf.get(HOST) or "127.0.0.1"
    port = conf.get(PORT) or "0"
    if not port.isdigit() or int(port) > 65535:
        raise OttlaError(f"{PORT} is '{port}', which is no port number.")
    return SpoolServer(host=host, bind=conf.get(BIND) or host, port=int(port), folder=folder_for_files(conf))


def folder_for_files(conf: Any) -> str:
    """Of the driver, where there is room for much."""
    return str(conf.get(FOLDER) or (conf.get("spark.local.dir") or tempfile.gettempdir()).split(",")[0])


@atexit.register
def _close() -> None:
    if _running is not None:
        _running[1].close()
