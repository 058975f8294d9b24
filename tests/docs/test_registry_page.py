"""docs/registry.md, done as it stands: its commands and its Python, in order, on one broker and one registry."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ottla.testing import Broker, Registry
from tests.docs.test_readme import commands
from tests.support.kafka_jars import REPO_ROOT
from tests.support.markdown import blocks

PAGE = REPO_ROOT / "docs" / "registry.md"
ORDER = '{"type": "record", "name": "Order", "fields": [{"name": "euro", "type": "double"}]}'
# Servers are there already, and Spark has a test of its own.
NOT_HERE = ("pip ", "ottla start", "ottla registry start", "ottla pipeline run", "ottla consume large-orders")

SPARK_S_MAX = 240

pytest.importorskip("confluent_kafka.schema_registry", reason="confluent-kafka's registry client is not installed")


def test_the_page_works_in_the_order_in_which_it_stands(tmp_path: Path) -> None:
    (tmp_path / "order.avsc").write_text(ORDER)
    program = tmp_path / "bin" / "ottla"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m ottla "$@"\n')
    program.chmod(0o755)
    printed = ""
    with Broker() as broker, Registry(broker.bootstrap_servers) as registry:
        environment = os.environ | {
            "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(REPO_ROOT / "src"),
            "OTTLA_BOOTSTRAP_SERVERS": broker.bootstrap_servers,
            "OTTLA_REGISTRY_URL": registry.url,
        }
        for block in blocks(PAGE):
            if block.language == "python":
                lines = [block.text if "SchemaRegistryClient(" not in block.text or "import" in block.text else ""]
            else:
                lines = [] if block.language else commands(block)
            for line in lines:
                if not line.strip() or line.startswith(NOT_HERE) or "ottla.testing" in line:
                    continue
                text = line.replace("http://127.0.0.1:8081", registry.url)
                text = text.replace("127.0.0.1:9092", broker.bootstrap_servers)
                command = [sys.executable, "-c", text] if block.language == "python" else ["sh", "-c", text]
                done = subprocess.run(
                    command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120
                )
                assert done.returncode == 0, (line, done.stdout, done.stderr)
                printed += done.stdout
    assert '{"euro": 7.0}' in printed, "what was written by Python is shown by the command line"
    assert "orders-value would accept it" in printed
    assert "orders-value version 1 has id 1" in printed, "the same schema is the same version"


@pytest.mark.slow
@pytest.mark.spark
def test_the_pipeline_of_the_page_runs(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    (block,) = [one for one in blocks(PAGE) if "@pipeline" in one.text]
    with Broker() as broker, Registry(broker.bootstrap_servers) as registry:
        (tmp_path / "large_orders.py").write_text(block.text.replace("http://127.0.0.1:8081", registry.url))
        (tmp_path / "order.avsc").write_text(ORDER)
        environment = os.environ | {
            "PYTHONPATH": str(REPO_ROOT / "src"),
            "OTTLA_BOOTSTRAP_SERVERS": broker.bootstrap_servers,
            "OTTLA_REGISTRY_URL": registry.url,
            "HOME": str(tmp_path),
        }

        def ottla(*words: str) -> str:
            command = [sys.executable, "-m", "ottla", *words]
            done = subprocess.run(
                command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=SPARK_S_MAX
            )
            assert done.returncode == 0, (words, done.stdout, done.stderr)
            return done.stdout

        ottla("topic", "create", "orders")
        ottla("topic", "create", "large-orders")
        ottla("schema", "register", "orders-value", "order.avsc")
        ottla("produce", "orders", "--schema", '{"euro": 7}', '{"euro": 1}', '{"euro": 8}', '{"euro": -1}')
        ottla("pipeline", "run", "large_orders.py", "--once")
        assert sorted(ottla("consume", "large-orders", "--schema", "-e").splitlines()) == [
            '{"euro": 7.0}',
            '{"euro": 8.0}',
        ]
        assert "negative amount" in ottla("consume", "large-orders-dead-letters", "-e", "-f", "%h\n")
