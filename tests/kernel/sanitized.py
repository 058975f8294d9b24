"""The kernel compiled with gcc's sanitizers, and Python running with it: a read or write past the end of memory, and
what C leaves undefined, ends the process with a report."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.kafka_jars import REPO_ROOT

FLAGS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer", "-O1", "-g")
_RUNTIMES = ("libasan.so", "libubsan.so")


def runtimes() -> list[str]:
    """What has to be loaded before Python. Skips where it is not there."""
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("gcc is not installed: apt-get install gcc")
    found = []
    for name in _RUNTIMES:
        asked = subprocess.run([compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True)
        path = Path(asked.stdout.strip())
        if not path.is_absolute() or not path.exists():
            pytest.skip(f"gcc's {name} is not installed: apt-get install libgcc-12-dev, or that of your gcc's version")
        found.append(str(path.resolve()))
    return found


def build(tree: Path) -> None:
    """Compiles `tree/src/ottla/kernel`, as the package's build does."""
    shutil.copy(REPO_ROOT / "hatch_build.py", tree)
    made = subprocess.run(
        [sys.executable, "hatch_build.py", *FLAGS],
        cwd=tree,
        env=os.environ | {"CC": "gcc"},
        capture_output=True,
        text=True,
    )
    assert made.returncode == 0, made.stdout + made.stderr


def copy_of_package(tree: Path) -> None:
    left_out = shutil.ignore_patterns("*.so", "__pycache__")
    shutil.copytree(REPO_ROOT / "src" / "ottla", tree / "src" / "ottla", ignore=left_out)


def run(tree: Path, arguments: Sequence[str], timeout_s: float = 3_000) -> subprocess.CompletedProcess[str]:
    """Python with these arguments, which finds the package of `tree` before any other."""
    environment = {
        **os.environ,
        "LD_PRELOAD": " ".join(runtimes()),
        # Python and its libraries keep much until they end, which is no leak of ours.
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        # Each object alone in its memory, else a neighbour's bytes look like one's own.
        "PYTHONMALLOC": "malloc",
        "ARROW_DEFAULT_MEMORY_POOL": "system",
        "PYTHONPATH": str(tree / "src"),
    }
    return subprocess.run(
        [sys.executable, *arguments], cwd=REPO_ROOT, env=environment, capture_output=True, text=True, timeout=timeout_s
    )
