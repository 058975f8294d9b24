"""Tells systemd how far the broker is (sd_notify), where it was started as a service of Type=notify."""

from __future__ import annotations

import logging
import os
import socket

log = logging.getLogger("ottla.server")

READY = "READY=1"
STOPPING = "STOPPING=1"


def tell(state: str) -> None:
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            # A leading @ stands for the zero byte of the abstract namespace.
            sock.connect("\0" + address[1:] if address.startswith("@") else address)
            sock.sendall(state.encode())
    except OSError as error:
        log.warning("cannot tell systemd", extra={"state": state, "why": error.strerror})
