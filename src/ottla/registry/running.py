"""An instance as a process of its own: until a signal ends it."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable

from ottla.registry.server import RegistryServer
from ottla.registry.settings import RegistrySettings

_LOG = logging.getLogger("ottla.registry")


async def run_until_signal(settings: RegistrySettings, on_ready: Callable[[str], None]) -> None:
    """Serve until SIGTERM, SIGINT, or the SIGHUP of a terminal that closes."""
    logging.getLogger("httpx").setLevel(logging.WARNING)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        if number is not signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, stopping.set)
    server = RegistryServer(settings)
    await server.start()
    on_ready(f"ready {server.url}")
    await stopping.wait()
    _LOG.info("stopping")
    await server.stop()
