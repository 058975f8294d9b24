"""The build compiles the kernel where it can, and says so in one line where it cannot."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.kafka_jars import REPO_ROOT

pytest.importorskip("Cython")
pytest.importorskip("setuptools")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A package with a kernel of one line."""
    shutil.copy(REPO_ROOT / "hatch_build.py", tmp_path)
    kernel = tmp_path / "src" / "ottla" / "kernel"
    kernel.mkdir(parents=True)
    (kernel / "tiny.pyx").write_text("def answer():\n    return 42\n")
    return tmp_path


def build(tree: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "hatch_build.py"]
    return subprocess.run(command, cwd=tree, env=os.environ | environment, capture_output=True, text=True, timeout=120)


def test_modules_stand_beside_their_sources(tree: Path) -> None:
    if shutil.which(os.environ.get("CC", "gcc")) is None:
        pytest.skip("there is no C compiler")
    done = build(tree)
    assert done.returncode == 0, done.stderr
    folder = tree / "src" / "ottla" / "kernel"
    assert [one.name.split(".")[0] for one in folder.glob("*.so")] == ["_tiny"]
    said = subprocess.run(
        [sys.executable, "-c", "import _tiny; print(_tiny.answer())"], cwd=folder, capture_output=True
    )
    assert said.stdout.strip() == b"42"


def test_without_a_compiler_one_line_says_so(tree: Path) -> None:
    done = build(tree, CC="/nonexistent/cc")
    assert done.returncode == 1
    told = [line for line in done.stderr.splitlines() if line.startswith("ottla: ")]
    assert len(told) == 1
    assert "the kernel is not compiled" in told[0] and "its twin in plain Python is used" in told[0]
    assert not list(tree.rglob("*.so"))
