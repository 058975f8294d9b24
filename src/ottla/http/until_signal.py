"""A server as a process of its own: until a signal ends it."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable
from typing import Protocol


class Service(Protocol):
    """What starts, says where it is, and stops."""

    @property
    def url(self) -> str: ...

    async def start(self) -> None: ...

    async def stop(self) -> None: ...


async def run_until_signal(service: Service, on_ready: Callable[[str], None], log: logging.Logger) -> None:
    """Serve until SIGTERM, SIGINT, or the SIGHUP of a terminal that closes. A second one ends the process at once: what
    is still asked of a cluster that says nothing may take half a minute."""
    logging.getLogger("httpx").setLevel(logging.WARNING)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()
    heard = [signal.SIGTERM, signal.SIGINT]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        heard.append(signal.SIGHUP)

    def stop() -> None:
        stopping.set()
        for number in heard:
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)

    for number in heard:
        loop.add_signal_handler(number, stop)
    await service.start()
    on_ready(f"ready {service.url}")
    await stopping.wait()
    log.info("stopping")
    await service.stop()
