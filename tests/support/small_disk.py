"""A file system of a few megabytes, to be filled. Needs root to mount it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_tmpfs(folder: Path, size: str) -> Iterator[Path]:
    if os.geteuid() != 0:
        pytest.skip("a full disk needs root to mount a small tmpfs")
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"a full disk needs a small tmpfs: {mounted.stderr.decode().strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def make_read_only(folder: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)


def fill(folder: Path) -> Path:
    """Take every byte that is left; gives the file that holds them."""
    ballast = folder / "ballast"
    with ballast.open("ab", buffering=0) as file:
        for piece in (1 << 16, 1 << 12, 1):
            try:
                while True:
                    file.write(bytes(piece))
            except OSError:
                continue
    return ballast
