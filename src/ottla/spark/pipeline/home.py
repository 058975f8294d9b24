"""Where pipelines live on this machine: one folder each, with its checkpoint, its lock and what it last said of itself.

    DIR/NAME/checkpoint/    Spark's: offsets and state
    DIR/NAME/lock           held by the process that runs the pipeline, whose pid is in it
    DIR/NAME/status.json    for `ottla pipeline list` and `status`
    DIR/NAME/versions.json  of an application that was run anew beside itself: which of its runs counts
    DIR/NAME/spark.log      what the JVM and the Python workers print, and what the runner says between

The lock is the kernel's: it ends with the process, however that ends, so a pipeline that was killed is known as such.
It is of the kind that can be asked about without being taken (fcntl(2), "open file description locks"): whoever looks
never keeps anybody from starting.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import IO, Any

from ottla.common.errors import OttlaError

STARTING, RUNNING, WAITING, STOPPING = "starting", "running", "waiting", "stopping"
STOPPED, FINISHED, FAILED, DIED = "stopped", "finished", "failed", "died"
_ALIVE = (STARTING, RUNNING, WAITING, STOPPING)
# The kernel's `struct flock`: type, whence, start, length (0: to the end), pid.
_FLOCK = struct.Struct("hhqqi4x")


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
    # Of a topology; its state is that of the tasks that last ran.
    dropped: int = 0
    state_entries: int = 0
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
    def checkpoint_url(self) -> str:
        """With its scheme: a path alone is on the file system that Hadoop's settings call the default one."""
        return f"file://{self.checkpoint.absolute()}"

    @property
    def versions(self) -> Path:
        return self.folder / "versions.json"

    def in_charge(self) -> str:
        """Its own name, or that of the run that took its place."""
        try:
            return str(json.loads(self.versions.read_text())["in_charge"])
        except FileNotFoundError:
            return self.name
        except (ValueError, KeyError, TypeError):
            raise OttlaError(f"the file {self.versions} is not as Ottla wrote it.") from None

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
                fcntl.fcntl(lock, fcntl.F_OFD_SETLK, _whole_file(fcntl.F_WRLCK))
            except BlockingIOError:
                raise OttlaError(
                    f"pipeline '{self.name}' is running already (pid {self.pid() or 'unknown'}): "
                    f"stop it with `ottla pipeline stop {self.name}`, or give this one another name."
                ) from None
            except OSError as error:
                raise OttlaError(f"the folder {self.folder} cannot be locked: {error.strerror}.") from None
            if not self._has(lock):
                raise OttlaError(f"pipeline '{self.name}' was deleted at this moment: start it again.")
            try:
                os.ftruncate(lock.fileno(), 0)
                os.write(lock.fileno(), str(os.getpid()).encode())
            except OSError as error:
                raise OttlaError(f"the folder {self.folder} cannot be used: {error.strerror}.") from None
            yield

    def is_running(self) -> bool:
        try:
            with (self.folder / "lock").open("r") as lock:
                found = fcntl.fcntl(lock, fcntl.F_OFD_GETLK, _whole_file(fcntl.F_RDLCK))
        except FileNotFoundError:
            return False
        return bool(_FLOCK.unpack(found)[0] != fcntl.F_UNLCK)

    def _has(self, lock: IO[str]) -> bool:
        """Whoever deletes a pipeline removes the lock while it is held: one that was opened before is nobody's."""
        try:
            return os.path.samestat(os.fstat(lock.fileno()), (self.folder / "lock").stat())
        except FileNotFoundError:
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
        status = self._written()
        # Its last word may have come between the two looks: then it is there now.
        if status.state in _ALIVE and not self.is_running() and (status := self._written()).state in _ALIVE:
            return replace(status, state=DIED, problem="its process ended without a word: see spark.log beside it.")
        return status

    def _written(self) -> Status:
        try:
            return _as_status(json.loads((self.folder / "status.json").read_text()))
        except (OSError, ValueError, TypeError):
            return Status(self.name, state=STARTING if self.is_running() else STOPPED)


def _as_status(found: Any) -> Status:
    """Of another version there may be more or less in it. Raises TypeError for what no version has written."""
    if not isinstance(found, dict):
        raise TypeError("not a status")
    blank = Status("")
    known = {field.name: getattr(blank, field.name) for field in fields(Status)}
    given = {name: value for name, value in found.items() if name in known}
    for name, value in given.items():
        kinds = (int, float) if isinstance(known[name], int | float) else (type(known[name]),)
        if known[name] is not None and not isinstance(value, kinds):
            raise TypeError(name)
    return Status(**given)


def _whole_file(kind: int) -> bytes:
    return _FLOCK.pack(kind, os.SEEK_SET, 0, 0, 0)


def homes(folder: Path) -> list[Home]:
    if not folder.is_dir():
        return []
    return [Home(folder, path.name) for path in sorted(folder.iterdir()) if (path / "lock").is_file()]


def home_of(folder: Path, name: str, *, exactly: bool = False) -> Home:
    """Raises OttlaError when no pipeline of this name was ever run here. An application that was switched over to a new
    run is answered for by that run, unless `exactly` this one is meant; `NAME-v1` always is the first run."""
    for home in homes(folder):
        if home.name == name:
            return home if exactly else Home(folder, home.in_charge())
    first = Home(folder, name.removesuffix("-v1"))
    if name.endswith("-v1") and first.versions.is_file():
        return first
    known = ", ".join(home.name for home in homes(folder)) or "none"
    raise OttlaError(f"no pipeline '{name}' was run in {folder} (there are: {known}).")


def status_data(status: Status) -> dict[str, Any]:
    return asdict(status)
