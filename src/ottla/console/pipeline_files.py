"""Pipelines and Streams applications that the console may start: files of one folder, which its operator names.

A pipeline is code, so nothing that comes from a browser is ever run: a visitor chooses one of the files that lie in the
folder already. Each runs as `ottla pipeline run` or `ottla streams run` would, in a process and session of its own that
goes on when the console ends, on the console's cluster. What the console logs in with is handed over in memory: it is
neither in the list of processes nor on a disk.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from ottla.common.errors import OttlaError

PIPELINE, STREAMS = "pipeline", "streams"
_FILES_MAX = 500
_SOURCE_BYTES_MAX = 1024 * 1024
_LAST_WORDS_BYTES = 4096


@dataclass(frozen=True)
class PipelineFile:
    path: Path
    kind: str

    @property
    def name(self) -> str:
        return self.path.name


def files_of(folder: Path) -> list[PipelineFile]:
    """Of the folder itself: what a link leads to elsewhere is not in it, nor what has a name that no page can show.
    Raises OttlaError."""
    try:
        home = folder.resolve(strict=True)
        found = sorted(path for path in home.iterdir() if path.suffix in (".py", ".sql") and path.name.isprintable())
        inside = [path for path in found if path.is_file() and path.resolve().parent == home]
    except OSError as error:
        raise OttlaError(f"the folder {folder} of --pipeline-files cannot be read: {error.strerror}.") from None
    kept = [(path, _kind(path)) for path in inside[:_FILES_MAX]]
    return [PipelineFile(path, kind) for path, kind in kept if kind is not None]


def _kind(path: Path) -> str | None:
    """By what the file imports; a module that is none of either is only imported by others."""
    if path.suffix == ".sql":
        return PIPELINE
    try:
        with path.open("rb") as file:
            tree = ast.parse(file.read(_SOURCE_BYTES_MAX))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return PIPELINE  # whoever starts it reads what is wrong with it
    imported = {
        name
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [f"{node.module}.{alias.name}" for alias in node.names]
            if isinstance(node, ast.ImportFrom) and node.module
            else []
        )
    }
    if any(f"{name}.".startswith("ottla.streams.") for name in imported):
        return STREAMS
    return PIPELINE if any(f"{name}.".startswith("ottla.") for name in imported) else None


@dataclass
class _Started:
    process: subprocess.Popen[bytes]
    words: IO[bytes]


class PipelineStarter:
    """Starts them, and knows how those ended that it has started."""

    def __init__(self, folder: Path, data_dir: Path, client: Mapping[str, str]) -> None:
        """`client`: librdkafka's settings of the cluster, `bootstrap.servers` among them."""
        self.folder = folder
        self._data_dir = data_dir
        self._client = client
        self._started: dict[str, _Started] = {}
        self._lock = threading.Lock()

    def find(self, name: str) -> PipelineFile:
        """Raises OttlaError for whatever is not one of the files."""
        for file in files_of(self.folder):
            if file.name == name:
                return file
        raise OttlaError(f"there is no pipeline '{name[:100]}' in {self.folder}.")

    def start(self, file: PipelineFile) -> None:
        """Raises OttlaError. That it runs is not known yet then: its status says so, or its last words do."""
        with self._lock:
            known = self._started.get(file.name)
            if known is not None and known.process.poll() is None:
                raise OttlaError(f"{file.name} was started from here and has not ended (pid {known.process.pid}).")
            words = tempfile.TemporaryFile()  # noqa: SIM115  it is read as long as the console runs
            command = [sys.executable, "-m", "ottla", file.kind, "run", str(file.path)]
            try:
                with _profile(self._client) as (environment, handed):
                    process = subprocess.Popen(
                        [*command, "--data-dir", str(self._data_dir.absolute())],
                        stdin=subprocess.DEVNULL,
                        stdout=subprocess.DEVNULL,
                        stderr=words,
                        env={**os.environ, **environment},
                        pass_fds=(handed,),
                        start_new_session=True,
                    )
            except OSError as error:
                words.close()
                raise OttlaError(f"{file.name} cannot be started: {error.strerror}.") from None
            if known is not None:
                known.words.close()
            self._started[file.name] = _Started(process, words)

    def state(self, name: str) -> tuple[str, str] | None:
        """Of one that was started from here: `starting` until it ends, then `failed` with its last words, or
        `ended`."""
        with self._lock:
            known = self._started.get(name)
            if known is None:
                return None
            status = known.process.poll()
            if status is None:
                return "starting", ""
            end = os.fstat(known.words.fileno()).st_size
            said = os.pread(known.words.fileno(), _LAST_WORDS_BYTES, max(0, end - _LAST_WORDS_BYTES))
            lines = said.decode(errors="replace").strip().splitlines()
            return ("failed", lines[-1] if lines else f"It ended with status {status}.") if status else ("ended", "")


class _profile:
    """A profile of the command line in memory, under a name that only the child can open."""

    def __init__(self, client: Mapping[str, str]) -> None:
        self._client = client

    def __enter__(self) -> tuple[dict[str, str], int]:
        self._handed = os.memfd_create("ottla-profile", os.MFD_CLOEXEC)
        lines = [f"{_quoted(name)} = {_quoted(value)}" for name, value in self._client.items()]
        os.write(self._handed, "\n".join(["[profiles.console]", *lines, ""]).encode())
        # Of the environment, addresses are stronger than those of a profile.
        environment = {
            "OTTLA_PROFILES": f"/proc/self/fd/{self._handed}",
            "OTTLA_PROFILE": "console",
            "OTTLA_BOOTSTRAP_SERVERS": self._client["bootstrap.servers"],
        }
        return environment, self._handed

    def __exit__(self, *exception: object) -> None:
        os.close(self._handed)


def _quoted(text: str) -> str:
    """As a basic string of TOML."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    plain = "".join(one if ord(one) >= 32 and ord(one) != 127 else f"\\u{ord(one):04x}" for one in escaped)
    return f'"{plain}"'
