"""Which seeds were played, by which code: so that a long search goes on where it was ended.

A text file. Its first line names the code, each further one a seed and what came of it. Seeds that another code has
played prove nothing of this one, so a journal of other code is refused.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import NamedTuple, TextIO

from ottla.common.errors import OttlaError

_FINE = "ok"


class Played(NamedTuple):
    took_s: float
    # None: nothing.
    wrong: str | None


class Journal:
    def __init__(self, path: Path, code: str) -> None:
        """Raises OttlaError if it is of other code."""
        self.played: dict[int, Played] = {}
        if path.exists():
            self._read(path, code)
        self._file: TextIO = path.open("a", encoding="utf-8")
        if self._file.tell() == 0:
            self._write(f"code {code}")

    def _read(self, path: Path, code: str) -> None:
        text = path.read_text(encoding="utf-8")
        whole, _, torn = text.rpartition("\n")
        lines = whole.splitlines()
        if lines and lines[0] != f"code {code}":
            raise OttlaError(f"{path} is of other code or settings, and proves nothing of these. Begin a new journal.")
        if torn:  # whoever wrote it was ended
            path.write_text(f"{whole}\n" if whole else "", encoding="utf-8")
        for line in lines[1:]:
            seed, took_s, outcome = line.split(" ", 2)
            self.played[int(seed)] = Played(float(took_s), None if outcome == _FINE else outcome)

    def note(self, seed: int, played: Played) -> None:
        self.played[seed] = played
        outcome = _FINE if played.wrong is None else played.wrong.splitlines()[0]
        self._write(f"{seed} {played.took_s:.3f} {outcome}")

    def _write(self, line: str) -> None:
        self._file.write(f"{line}\n")
        self._file.flush()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def code_in_use() -> str:
    """A name for the code of all our modules that are loaded: those that a simulated cluster is made of."""
    digest = hashlib.sha256()
    for name, module in sorted(sys.modules.items()):
        source = getattr(module, "__file__", None)
        if name.partition(".")[0] == "ottla" and source is not None and source.endswith(".py"):
            digest.update(name.encode())
            digest.update(Path(source).read_bytes())
    return digest.hexdigest()[:16]
