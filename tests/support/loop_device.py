"""A file system of its own on a loop device, so that a test can pull the plug on it.

What the broker has written is in the page cache of the mounted file system; what it has synced is in the device's
backing file. A copy of that file is the disk as it would be found after a power cut. Needs root and loop devices.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

IMAGE_BYTES = 96 << 20


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    if done.returncode:
        raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout.strip()


def why_no_loop_device(folder: Path) -> str | None:
    """One sentence when this machine cannot mount an image, None when it can."""
    if os.geteuid() != 0:
        return "power cuts on a real file system need root to mount loop devices"
    for tool in ("mkfs.ext4", "mount", "umount", "losetup"):
        if shutil.which(tool) is None and not Path("/usr/sbin", tool).exists():
            return f"power cuts on a real file system need {tool}"
    try:
        image = make_image(folder / "try.img", 8 << 20)
        with mounted(image, folder / "try"):
            pass
    except OSError as error:
        return f"power cuts on a real file system need loop devices: {error}"
    return None


def require_loop_device(folder: Path) -> None:
    reason = why_no_loop_device(folder)
    if reason is not None:
        pytest.skip(reason)


def make_image(path: Path, size: int = IMAGE_BYTES) -> Path:
    with path.open("wb") as file:
        file.truncate(size)
    _run("mkfs.ext4", "-q", "-F", "-O", "^metadata_csum", str(path))
    return path


@contextlib.contextmanager
def mounted(image: Path, folder: Path) -> Iterator[Path]:
    folder.mkdir(exist_ok=True)
    # A long commit interval: nothing becomes durable because some time has passed.
    _run("mount", "-o", "loop,commit=300", str(image), str(folder))
    try:
        yield folder
    finally:
        _run("umount", "--lazy", str(folder))


def pull_the_plug(image: Path, copy: Path) -> Path:
    """The disk as a power cut at this moment would leave it."""
    _run("cp", "--sparse=always", str(image), str(copy))
    return copy
