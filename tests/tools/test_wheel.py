"""What `make wheel` makes: installed where there is no compiler, it has the compiled kernel."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.support.kafka_jars import REPO_ROOT

SHOW = """
import ottla
from ottla.kernel import decode, encode
print(ottla.__file__, decode.IS_COMPILED, encode.IS_COMPILED)
"""


def pip(python: Path | str, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [str(python), "-m", "pip", "--disable-pip-version-check", *map(str, arguments)]
    return subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, timeout=600)


@pytest.mark.slow  # the kernel is compiled: a quarter of a minute
def test_a_wheel_brings_the_kernel_to_a_machine_without_a_compiler(tmp_path: Path) -> None:
    if shutil.which(os.environ.get("CC", "gcc")) is None:
        pytest.skip("there is no C compiler")
    # A copy: modules that other tests have loaded are not overwritten.
    source, dist, machine = tmp_path / "source", tmp_path / "dist", tmp_path / "machine"
    shutil.copytree(REPO_ROOT / "src", source / "src", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE"):
        shutil.copy(REPO_ROOT / name, source)
    built = pip(sys.executable, "wheel", "--quiet", "--no-deps", "--wheel-dir", dist, source)
    if built.returncode != 0 and "No matching distribution found for hatchling" in built.stderr:
        pytest.skip("the package index cannot be reached")
    assert built.returncode == 0, built.stderr
    (wheel,) = dist.glob("*.whl")

    subprocess.run([sys.executable, "-m", "venv", str(machine)], check=True)
    python = machine / "bin" / "python"
    installed = pip(python, "install", "--no-index", "--no-deps", wheel, PATH=str(machine / "bin"), CC="none")
    assert installed.returncode == 0, installed.stderr
    # Its dependencies are those that are installed here.
    variables = os.environ | {"PYTHONPATH": sysconfig.get_path("purelib"), "PATH": str(machine / "bin")}
    shown = subprocess.run([str(python), "-c", SHOW], env=variables, cwd=tmp_path, capture_output=True, text=True)
    file, *compiled = shown.stdout.split()
    assert Path(file).is_relative_to(machine), shown.stderr
    assert compiled == ["True", "True"]
