"""The README, done as it stands: each command and each Python example, in order, on one broker."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.testing import Broker
from tests.support.kafka_jars import REPO_ROOT
from tests.support.markdown import Block, blocks

README = REPO_ROOT / "README.md"
TIME_S_MAX = 300
# Not done here, but checked as far as it goes: they set up machines or take minutes.
SET_UP = ("make ", "pip ", "python3 -m venv", "ottla pipeline ")


def commands(block: Block) -> list[str]:
    """The lines of a block without their comments; an example has no # inside quotes."""
    lines = (line.partition(" #")[0].strip() for line in block.text.splitlines())
    return [line for line in lines if line and not line.startswith("#")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the commands run, with an `ottla` of this source tree."""
    program = tmp_path / "bin" / "ottla"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m ottla "$@"\n')
    program.chmod(0o755)
    return tmp_path


@pytest.fixture
def broker() -> Iterator[Broker]:
    """With a server's properties, where those for tests differ."""
    with Broker({"group.initial.rebalance.delay.ms": None, "offsets.topic.num.partitions": None}) as broker:
        yield broker


class Shell:
    def __init__(self, folder: Path, broker: Broker) -> None:
        self._folder, self._address = folder, broker.bootstrap_servers
        self._environment = os.environ | {
            "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(REPO_ROOT / "src"),
            "OTTLA_BOOTSTRAP_SERVERS": broker.bootstrap_servers,
        }

    def run(self, *command: str) -> str:
        command = tuple(one.replace("localhost:9092", self._address) for one in command)
        done = subprocess.run(
            command, cwd=self._folder, env=self._environment, capture_output=True, text=True, timeout=TIME_S_MAX
        )
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        assert "Traceback" not in done.stderr
        return done.stdout

    def serve(self, line: str) -> None:
        """`ottla start`, on a free port and in a folder of ours, until it is ready."""
        line = re.sub(r"--listen \S+", "", line).replace("/var/lib/ottla", "data")
        (self._folder / "server.properties").write_text("num.partitions=2\n")
        words = [*shlex.split(line), "--listen", "127.0.0.1:0", "-X", f"log.dirs={self._folder / 'data'}"]
        with subprocess.Popen(words, cwd=self._folder, env=self._environment, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline().startswith(b"ready ")
            process.terminate()
            assert process.wait(TIME_S_MAX) == 0


def test_the_readme_works_in_the_order_in_which_it_stands(folder: Path, broker: Broker) -> None:
    shell, printed = Shell(folder, broker), ""
    for block in blocks(README):
        if block.language == "python" and "ottla.spark" not in block.text:
            printed += shell.run(sys.executable, "-c", block.text)
        for line in commands(block) if not block.language else ():
            if line.startswith("ottla start"):
                shell.serve(line)
            elif not line.startswith(SET_UP) and ("kcat " not in line or shutil.which("kcat")):
                printed += shell.run("sh", "-c", line)
    assert "created orders" in printed
    assert 'customer-1 {"euro": 7}' in printed  # by the command line
    assert "b'customer-1' b'{\"euro\": 7}'" in printed  # by Python
    assert "b'customer-2' b'{\"euro\": 9}'" in printed


def test_what_sets_up_is_there() -> None:
    lines = [line for block in blocks(README) if not block.language for line in commands(block)]
    targets = set(re.findall(r"^([a-z-]+):", (REPO_ROOT / "Makefile").read_text(), re.MULTILINE))
    assert {line.split()[1] for line in lines if line.startswith("make ")} <= targets
    extras = tomllib.loads((REPO_ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = set(re.findall(r"pip install '\.\[(\w+)\]'", README.read_text()))
    assert named
    assert named <= set(extras)


def test_the_pipeline_is_one(folder: Path) -> None:
    pytest.importorskip("pyspark")
    from ottla.spark.pipeline.loading import load

    (block,) = [one for one in blocks(README) if "ottla.spark" in one.text]
    (folder / "sales.py").write_text(block.text)
    assert load(folder / "sales.py").name == "sales-by-country"
