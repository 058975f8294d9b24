"""A process in the background that a later command finds again: by its pid and the moment it started.

`process.json` in its folder says who it is. A pid alone may belong to somebody else by now, after a crash or a reboot;
the kernel's boot id and the process's start time in it tell one from the other, so that no signal ever reaches a
stranger. Each process leads a session of its own: what it forked gets its signals too, and a closed terminal ends none.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

LOOK_S = 0.02
# Fields of /proc/PID/stat, counted behind the name of the program: state, start time in ticks.
_STATE, _THREADS, _STARTED = 0, 17, 19
_DEAD = ("Z", "X")
_STOPPED = ("T", "t")


@dataclass(frozen=True)
class Identity:
    pid: int
    started_ticks: int
    boot_id: str


class Background:
    """One process by its name, whether it runs or not."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.folder = folder
        self.log = folder / f"{name}.log"
        self._identity_file = folder / "process.json"

    # -- facts -----------------------------------------------------------------------------------------------------

    @property
    def pid(self) -> int | None:
        """Of the process, if it is there and still the one that was started."""
        identity = self._remembered()
        return identity.pid if identity is not None and _is_there(identity) else None

    @property
    def state(self) -> str:
        pid = self.pid
        fields = _stat(pid) if pid is not None else None
        if fields is None:
            return "stopped"
        return "paused" if fields[_STATE] in _STOPPED else "running"

    def last_words(self, lines: int = 3) -> str:
        """The end of its log, in one line."""
        with contextlib.suppress(FileNotFoundError):
            return " / ".join(self.log.read_text(errors="replace").splitlines()[-lines:])
        return ""

    def _remembered(self) -> Identity | None:
        try:
            return Identity(**json.loads(self._identity_file.read_text()))
        except (FileNotFoundError, ValueError, TypeError):
            return None

    # -- life ------------------------------------------------------------------------------------------------------

    def start(self, command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        """Nothing, if it runs already. What it prints goes to its log."""
        if self.pid is not None:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, start_new_session=True
            )
        fields = _stat(process.pid)
        assert fields is not None, "nobody has waited for it, so at least a zombie is there"
        identity = Identity(process.pid, int(fields[_STARTED]), _boot_id())
        fresh = self._identity_file.with_suffix(".new")
        fresh.write_text(json.dumps(asdict(identity)))
        os.replace(fresh, self._identity_file)

    def send(self, number: signal.Signals) -> bool:
        """To it and all that it forked; False if it is not there."""
        pid = self.pid
        if pid is None:
            return False
        try:
            os.killpg(pid, number)
        except ProcessLookupError:
            return False
        return True

    def await_state(self, wanted: str, timeout_s: float) -> bool:
        deadline = time.monotonic() + timeout_s
        while self.state != wanted:
            if time.monotonic() > deadline:
                return False
            time.sleep(LOOK_S)
        return True


def _is_there(identity: Identity) -> bool:
    if identity.boot_id != _boot_id():
        return False
    fields = _stat(identity.pid)
    if fields is None or int(fields[_STARTED]) != identity.started_ticks:
        return False
    # Its first thread may have ended before the others, which still have its ports and files.
    return fields[_STATE] not in _DEAD or int(fields[_THREADS]) > 1


def _stat(pid: int) -> list[str] | None:
    """What the kernel says of a process; None if there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


def _boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
