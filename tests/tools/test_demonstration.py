"""`make up`: what it shows of pipelines, and what it says where there is no Java."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ottla.testing import Broker
from tests.support.kafka_jars import REPO_ROOT

TOOLS = REPO_ROOT / "tools"


def test_without_java_and_without_a_way_to_install_it_one_sentence_says_so(tmp_path: Path) -> None:
    for tool in ("bash", "sed", "head", "id", "env"):
        found = shutil.which(tool)
        assert found is not None
        (tmp_path / tool).symlink_to(found)
    done = subprocess.run(
        [tmp_path / "bash", TOOLS / "java"], env={"PATH": str(tmp_path)}, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert done.stdout.startswith("Java 17 or newer is missing and could not be installed here")
    assert done.stdout.count("\n") == 1


@pytest.mark.slow
@pytest.mark.timeout(660)
@pytest.mark.spark
@pytest.mark.xdist_group("spark")
@pytest.mark.skipif(shutil.which("java") is None, reason="Java is not installed")
def test_the_pipeline_of_the_demonstration_counts_every_order_once_though_it_is_killed(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    with Broker() as broker:
        done = subprocess.run(
            [sys.executable, TOOLS / "demo_pipeline.py", broker.bootstrap_servers, tmp_path / "pipelines"],
            env={**os.environ, "PYTHONPATH": str(REPO_ROOT / "src")},
            capture_output=True,
            text=True,
            timeout=600,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "kill -9" in done.stdout
    last = re.fullmatch(r"rows in ([\d,]+) = rows counted ([\d,]+), duplicates 0", done.stdout.splitlines()[-1])
    assert last is not None, done.stdout
    assert last[1] == last[2] != "0"
