"""Where pipelines live on this machine: one folder each, with its checkpoint, its lock and what it last said of itself.

    DIR/NAME/checkpoint/    Spark's: offsets and state
    DIR/NAME/lock           held by the process that runs the pipeline, whose pid is in it
    DIR/NAME/status.json    for `ottla pipeline list` and `status`
    DIR/NAME/spark.log      what the JVM and the Python workers print, and what the runner says between

The lock is the kernel's: it ends with the process, however that ends, so a pipeline that was killed is known as such.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from ottla.common.errors import OttlaError

STARTING, RUNNING, WAITING, STOPPING = "starting", "running", "waiting", "stopping"
STOPPED, FINISHED, FAILED, DIED = "stopped", "finished", "failed", "died"
_ALIVE = (STARTING, RUNNING, WAITING, STOPPING)


def data_folder(named: Path | None = None) -> Path:
    """DIR of above: what is named, OTTLA_PIPELINES, or ottla/pipelines in the user's XDG_DATA_HOME."""
    if named is not None:
        return named
    if chosen := os.environ.get("OTTLA_PIPELINES"):
        return Path(chosen)
    base = os.environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "ottla" / "pipelines"


@dataclass(frozen=True)
class Status:
    """What a runner says of its pipeline; times are seconds since 1970."""

    name: str
    file: str = ""
    state: str = STOPPED
    pid: int = 0
    master: str = ""
    bootstrap: str = ""
    started: float = 0.0
    updated: float = 0.0
    batch: int | None = None
    rows_in: int = 0
    bytes_in: int = 0
    rows_out: int = 0
    dead_letters: int = 0
    late_rows: int = 0
    lag: int | None = None
    input_rows_per_s: float = 0.0
    batch_ms: int = 0
    restarts: int = 0
    problem: str | None = None
    topics: list[str] = field(default_factory=list)
    checkpoint: str = ""


class Home:
    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self.folder = folder / name

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint"

    @property
    def spark_log(self) -> Path:
        return self.folder / "spark.log"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Only one process of this machine may run a pipeline. Raises OttlaError when there is one."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            # Appending opens without emptying it: the pid of another process may be in there.
            lock = (self.folder / "lock").open("a+")
        except OSError as error:
            raise OttlaError(f"the folder {self.folder} cannot be used: {error.strerror}.") from None
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise OttlaError(
                    f"pipeline '{self.name}' is running already (pid {self.pid() or 'unknown'}): "
                    f"stop it with `ottla pipeline stop {self.name}`, or give this one another name."
                ) from None
            lock.truncate(0)
            lock.write(str(os.getpid()))
            lock.flush()
            yield

    def is_running(self) -> bool:
        try:
            with (self.folder / "lock").open("r") as lock:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    def pid(self) -> int | None:
        try:
            return int((self.folder / "lock").read_text())
        except (OSError, ValueError):
            return None

    def log(self, sentence: str) -> None:
        """For `ottla pipeline logs`, among what Spark says at that time."""
        stamp = time.strftime("%y/%m/%d %H:%M:%S")  # as Spark writes it
        with self.spark_log.open("a") as log:
            log.write(f"{stamp} INFO ottla: {sentence}\n")

    def remove(self) -> None:
        """All of it. The one who holds the lock calls this."""
        shutil.rmtree(self.folder)

    def write(self, status: Status) -> None:
        """A reader sees the old one or the new one, never a part."""
        new = self.folder / "status.json.new"
        new.write_text(json.dumps(asdict(status), indent=1))
        new.replace(self.folder / "status.json")

    def read(self) -> Status:
        """The last status; that of a process that is gone without a word is `died`."""
        try:
            found = json.loads((self.folder / "status.json").read_text())
            known = {one.name for one in fields(Status)}
            status = Status(**{name: value for name, value in found.items() if name in known})
        except (OSError, ValueError, TypeError):
            status = Status(self.name, state=STARTING if self.is_running() else STOPPED)
        if status.state in _ALIVE and not self.is_running():
            return replace(status, state=DIED, problem="its process ended without a word: see spark.log beside it.")
        return status


def homes(folder: Path) -> list[Home]:
    if not folder.is_dir():
        return []
    return [Home(folder, one.name) for one in sorted(folder.iterdir()) if (one / "lock").is_file()]


def home_of(folder: Path, name: str) -> Home:
    """Raises OttlaError when no pipeline of this name was ever run here."""
    for home in homes(folder):
        if home.name == name:
            return home
    known = ", ".join(home.name for home in homes(folder)) or "none"
    raise OttlaError(f"no pipeline '{name}' was run in {folder} (there are: {known}).")


def status_data(status: Status) -> dict[str, Any]:
    return asdict(status)
