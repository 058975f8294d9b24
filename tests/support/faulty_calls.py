"""System calls that fail on purpose: the n-th one on a file below a folder, whoever makes it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Self

READS = frozenset(("pread", "read", "stat"))
WRITES = frozenset(("open", "pwrite", "pwritev", "rename", "ftruncate", "unlink"))
SYNCS = frozenset(("fsync",))
# What the metadata store does in SQLite is not seen here, and its files are left alone.
_NOT_OURS = ("__ottla_metadata", "__ottla_reserve")


class FaultyCalls:
    """`with FaultyCalls(folder, code, calls, at):` the at-th of these calls, counted from 1, fails with this errno; the
    next one works again. Brokers need `disk=Disk()`: the usual one goes past the names that are replaced here."""

    def __init__(self, folder: Path, code: int, calls: frozenset[str], at: int) -> None:
        self._folder = str(folder)
        self._code = code
        self._at = at
        self._real = {name: getattr(os, name) for name in sorted(calls)}
        self._count = 0
        # Which call failed, and on what.
        self.failed: tuple[str, str] | None = None

    def __enter__(self) -> Self:
        for name in self._real:
            setattr(os, name, self._faulty(name))
        return self

    def __exit__(self, *_: object) -> None:
        for name, real in self._real.items():
            setattr(os, name, real)

    def _faulty(self, name: str) -> Any:
        real = self._real[name]

        def call(*arguments: Any, **more: Any) -> Any:
            path = self._path(arguments[0])
            if path.startswith(self._folder) and not any(one in path for one in _NOT_OURS):
                self._count += 1
                if self._count == self._at:
                    self.failed = name, path.removeprefix(self._folder)
                    raise OSError(self._code, os.strerror(self._code))
            return real(*arguments, **more)

        return call

    def _path(self, file: Any) -> str:
        try:
            return os.readlink(f"/proc/self/fd/{file}") if isinstance(file, int) else os.fspath(file)
        except OSError:
            return ""
