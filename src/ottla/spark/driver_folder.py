"""A folder for files of a driver that nobody needs once it is gone: locked while the driver lives, and those of drivers
that were killed are removed by the next one."""

from __future__ import annotations

import fcntl
import shutil
import tempfile
from pathlib import Path

_LOCK = "lock"


class DriverFolder:
    def __init__(self, parent: str | Path, prefix: str) -> None:
        """Raises OSError when files cannot be written there."""
        self._parent = Path(parent)
        self._parent.mkdir(parents=True, exist_ok=True)
        # Under another name until it is locked: one without a lock is a leftover.
        unnamed = Path(tempfile.mkdtemp(prefix=f".{prefix}", dir=self._parent))
        self._lock = (unnamed / _LOCK).open("wb")
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self.path = unnamed.rename(self._parent / unnamed.name.removeprefix("."))
        self._remove_leftovers(prefix)

    def _remove_leftovers(self, prefix: str) -> None:
        for other in self._parent.glob(f"{prefix}*"):
            try:
                with (other / _LOCK).open("rb") as lock:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(other, ignore_errors=True)
            except OSError:
                continue  # it lives, or is another user's

    def close(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.close()
