"""docs/tracing.md, done as it stands: its commands, its process and its Python, in order, on one broker."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from ottla.testing import Broker
from tests.docs.test_readme import commands
from tests.support.kafka_jars import REPO_ROOT
from tests.support.markdown import blocks

PAGE = REPO_ROOT / "docs" / "tracing.md"
SOMETHING_IS_WRONG = 3


def test_the_page_works_in_the_order_in_which_it_stands(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "ottla"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m ottla "$@"\n')
    program.chmod(0o755)
    printed: dict[str, str] = {}
    with Broker() as broker:
        environment = os.environ | {
            "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(REPO_ROOT / "src"),
            "OTTLA_BOOTSTRAP_SERVERS": broker.bootstrap_servers,
        }
        for block in blocks(PAGE):
            if block.language == "toml":
                (tmp_path / "process.toml").write_text(block.text)
            if block.language not in ("", "python"):
                continue
            for line in commands(block) if not block.language else [block.text]:
                text = line.replace("127.0.0.1:9092", broker.bootstrap_servers)
                run = [sys.executable, "-c", text] if block.language else ["sh", "-c", text]
                done = subprocess.run(run, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
                expected = SOMETHING_IS_WRONG if "trace watch" in text else 0
                assert done.returncode == expected, (line, done.stderr)
                printed[line] = done.stdout
    traced, watched = (next(out for line, out in printed.items() if word in line) for word in ("trace orders", "watch"))
    assert "3 records of this story" in traced and "billing" in traced
    assert "order-2" in watched and "duplicate" in watched and "order-1" not in watched
    assert (tmp_path / "order-1.svg").read_text().startswith("<svg")
