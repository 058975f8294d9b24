"""`make setup` gets a compiler where it may, and says in a line what it does and what is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.kafka_jars import REPO_ROOT

FAKE_PYTHON = "#!/bin/bash\nif [ $# -gt 1 ]; then echo 3.13; fi\n"  # it has its headers
FAKE_APT = '#!/bin/bash\necho "$@" >>{log}\n[ "$1" != install ] || {then}\n'


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A folder of programs that is all there is: no compiler."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("bash", "id", "env", "cat", "ln"):
        found = shutil.which(name)
        assert found is not None
        (folder / name).symlink_to(found)
    put(folder / "python", FAKE_PYTHON)
    put(folder / "sudo", '#!/bin/bash\nshift\nexec "$@"\n')
    return folder


def put(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def compiler(machine: Path) -> tuple[int, list[str]]:
    variables = {name: value for name, value in os.environ.items() if name != "CC"} | {"PATH": str(machine)}
    command = [str(REPO_ROOT / "tools" / "compiler"), "python"]
    done = subprocess.run(["bash", *command], env=variables, capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()


def test_nothing_is_said_where_there_is_one(machine: Path) -> None:
    put(machine / "gcc", "#!/bin/bash\n")
    assert compiler(machine) == (0, [])


def test_it_is_installed_where_apt_may(machine: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    put(machine / "apt-get", FAKE_APT.format(log=log, then=f"ln -s bash {machine}/gcc"))
    status, said = compiler(machine)
    assert (status, len(said)) == (0, 1)
    assert said[0].endswith("installing gcc and Python's headers with apt-get ...")
    (asked,) = log.read_text().splitlines()
    assert asked.endswith("gcc libc6-dev python3.13-dev")


def test_where_it_may_not_one_line_says_what_that_means(machine: Path, tmp_path: Path) -> None:
    status, said = compiler(machine)
    assert (status, len(said)) == (1, 1)
    assert said[0].endswith("pipelines on Spark work, far slower.")
    put(machine / "apt-get", FAKE_APT.format(log=tmp_path / "log", then="exit 100"))
    assert compiler(machine) == (
        1,
        [
            "The fast kernel of pipelines on Spark is compiled: installing gcc and Python's headers with apt-get ...",
            said[0],
        ],
    )
