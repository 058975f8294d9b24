"""A server as a process of its own: until a signal ends it."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Protocol

# For servers that lose nothing: long enough to answer those who wait, and to leave a group whose coordinator is there.
LEAVE_S_MAX = 2.0


class Service(Protocol):
    """What starts, says where it is, and stops."""

    @property
    def url(self) -> str: ...

    async def start(self) -> None: ...

    async def stop(self) -> None: ...


async def run_until_signal(
    service: Service, on_ready: Callable[[str], None], log: logging.Logger, *, leave_s_max: float | None = None
) -> None:
    """Serve until SIGTERM, SIGINT, or the SIGHUP of a terminal that closes. A second one ends the process at once.

    With `leave_s_max` the process is over so long after the first one, whatever its threads still ask of a cluster that
    says nothing, and a start that waits for an answer is given up. Without, all that `stop` does is waited for.
    """
    logging.getLogger("httpx").setLevel(logging.WARNING)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()
    heard = [signal.SIGTERM, signal.SIGINT]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        heard.append(signal.SIGHUP)

    def stop() -> None:
        stopping.set()
        if leave_s_max is not None:
            _end_after(leave_s_max, log)
        for number in heard:
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)

    for number in heard:
        loop.add_signal_handler(number, stop)
    starting = asyncio.ensure_future(service.start())
    if leave_s_max is not None:
        asked = asyncio.ensure_future(stopping.wait())
        await asyncio.wait((starting, asked), return_when=asyncio.FIRST_COMPLETED)
        asked.cancel()
        if not starting.done():
            log.info("stopping before it has started")
            starting.cancel()
            await asyncio.wait((starting,))
            return
    await starting
    on_ready(f"ready {service.url}")
    await stopping.wait()
    log.info("stopping")
    await service.stop()


def _end_after(seconds: float, log: logging.Logger) -> None:
    """Threads that wait for an answer cannot be interrupted, and Python ends only with the last of them."""

    def end() -> None:
        log.info("what still waits for an answer is left behind")
        sys.stdout.flush()
        os._exit(0)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
