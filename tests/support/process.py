"""A broker as a child process: start, stop, kill, restart on the same port and data, and what it costs.

The child leads a session of its own, so that `close` can end what it forked too, and nothing else. `kill` is a crash:
SIGKILL to the broker alone, its data left as it is.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import struct
import subprocess
import time
from collections import deque
from pathlib import Path
from types import TracebackType
from typing import Self

CLOCK_TICKS = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class BrokerDidNotStart(RuntimeError):
    """The child ended or stayed silent; the message carries the end of its output."""


class BrokerProcess:
    """Common to both brokers. A subclass gives `name` and `_launch`, which sets `_process` and `port`."""

    name = "broker"
    host = "127.0.0.1"

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.folder.mkdir(parents=True, exist_ok=True)
        self.port = 0
        self.started_in_s = 0.0
        self._process: subprocess.Popen[bytes] | None = None

    # -- life ------------------------------------------------------------------------------------------------------

    def start(self, timeout_s: float = 60.0) -> Self:
        assert not self.running, f"{self.name} runs already"
        before = time.perf_counter()
        try:
            self._launch(time.monotonic() + timeout_s)
        except BaseException:
            self.close()
            raise
        self.started_in_s = time.perf_counter() - before
        return self

    def _launch(self, deadline: float) -> None:
        raise NotImplementedError

    def stop(self, timeout_s: float = 60.0) -> int:
        """SIGTERM and wait: the exit status."""
        assert self._process is not None
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        status = self._process.wait(timeout_s)
        self._forget()
        return status

    def kill(self) -> None:
        """kill -9 of the broker process."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(30)
        self._forget()

    def pause(self) -> None:
        """SIGSTOP: it lives, its connections stay, and nothing answers."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def restart(self, *, kill: bool = False) -> Self:
        """Down (by SIGTERM, or SIGKILL) and up again: same address, same data."""
        if self.running:
            self.kill() if kill else self.stop()
        return self.start()

    def close(self) -> None:
        """Ends the broker and all that it forked; safe to call twice."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(30)
            self._forget()

    def _forget(self) -> None:
        assert self._process is not None
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._process = None

    def __enter__(self) -> Self:
        return self if self.running else self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    # -- facts -----------------------------------------------------------------------------------------------------

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        assert self._process is not None, f"{self.name} is not running"
        return self._process.pid

    @property
    def bootstrap(self) -> str:
        return f"{self.host}:{self.port}"

    def log_tail(self, lines: int = 40) -> str:
        return "\n".join(self._log_path.read_text(errors="replace").splitlines()[-lines:])

    @property
    def _log_path(self) -> Path:
        return self.folder / f"{self.name}.log"

    def cpu_seconds(self) -> float:
        """User and system time of the broker, of its live children, and of the children it has waited for."""
        return family_cpu_seconds(self.pid)

    def rss_bytes(self) -> int:
        """Resident memory of the broker and its children; pages they share are counted once per process."""
        pages = 0
        for pid in family(self.pid):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                pages += int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        return pages * PAGE_BYTES


def family(pid: int) -> list[int]:
    """The process and all that descend from it and live."""
    found, waiting = [], [pid]
    while waiting:
        one = waiting.pop()
        found.append(one)
        for children in Path(f"/proc/{one}/task").glob("*/children"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                waiting += map(int, children.read_text().split())
    return found


def family_cpu_seconds(pid: int) -> float:
    """User and system time of a process and its descendants, those that it has waited for included."""
    ticks = 0
    for one in family(pid):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(int(field) for field in fields[11:15])
    return ticks / CLOCK_TICKS


def is_readable(descriptor: int, timeout_s: float) -> bool:
    """Whether there is something to read, or the end, in this time. By poll: select() knows 1,024 descriptors."""
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    return bool(waiting.poll(max(0.0, timeout_s) * 1000))


# Of the newest ports that were given away; who got one of the oldest has ended long ago.
_held_ports: deque[socket.socket] = deque()
_HELD_PORTS_MAX = 200


def free_ports(count: int) -> list[int]:
    """Ports that are free and stay so for whoever reuses an address, as servers do: nobody else gets one by chance, not
    even a client as its own end of a connection, while the server is not up yet or down for a moment."""
    for _ in range(count):
        held = socket.socket()
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        _held_ports.append(held)
    ports = [held.getsockname()[1] for held in list(_held_ports)[-count:]]
    while len(_held_ports) > _HELD_PORTS_MAX:
        _held_ports.popleft().close()
    return ports


def answers_api_versions(host: str, port: int, timeout_s: float = 1.0) -> bool:
    """Whether a broker answers ApiVersions v0 there without an error."""
    request = struct.pack(">ihhih", 10, 18, 0, 1, -1)
    try:
        with socket.create_connection((host, port), timeout_s) as connection:
            connection.sendall(request)
            answer = b""
            while len(answer) < 10:
                piece = connection.recv(4096)
                if not piece:
                    return False
                answer += piece
    except OSError:
        return False
    return answer[8:10] == b"\x00\x00"


def descendants(pid: int) -> list[int]:
    """Children, their children and so on."""
    found: list[int] = []
    threads = Path(f"/proc/{pid}/task")
    with contextlib.suppress(OSError):
        for thread in threads.iterdir():
            for child in map(int, (thread / "children").read_text().split()):
                found += [child, *descendants(child)]
    return found


def command_of(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    return ""
