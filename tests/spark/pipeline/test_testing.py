"""docs/testing-pipelines.md: the example in it is run as it stands, beside the pipeline of the tutorial."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from ottla.common.errors import OttlaError
from ottla.spark.pipeline.definition import pipeline
from ottla.testing import Pipelines
from tests.cli.command import Cli
from tests.support.kafka_jars import REPO_ROOT
from tests.testing.test_pytest_plugin import load_plugin

DOCS = REPO_ROOT / "docs"


def block(page: str, start: str) -> str:
    """The first block of Python of a page that begins so."""
    found = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)
    return next(one for one in found if one.startswith(start))


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "sales.py").write_text(block("tutorial-pipelines.md", "from pyspark.sql import functions"))
    (tmp_path / "test_sales.py").write_text(block("testing-pipelines.md", "from pathlib import Path"))
    return tmp_path


@pytest.fixture
def ottla_pipelines(spark: Any) -> Iterator[Pipelines]:
    """As the fixture that users get, on the Spark of these tests."""
    with Pipelines(spark) as pipelines:
        yield pipelines


def test_the_example_of_the_docs(ottla_pipelines: Pipelines, files: Path) -> None:
    """Its first test; all of it is run below."""
    spec = spec_from_file_location("example_of_the_docs", files / "test_sales.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    module.test_orders_are_counted_by_country(ottla_pipelines)


def test_what_ends_a_pipeline_is_raised_and_settings_are_put_back(ottla_pipelines: Pipelines, spark: Any) -> None:
    seen = []

    @pipeline(to="out", conf={"spark.sql.session.timeZone": "Asia/Tokyo", "spark.ui.enabled": False})
    def wrong(topics: Any) -> Any:
        seen.append(topics.spark.conf.get("spark.sql.session.timeZone"))
        return topics.stream("in", "euro double").select("colour")

    ottla_pipelines.create_topic("in")
    before = spark.conf.get("spark.sql.session.timeZone")
    with pytest.raises(OttlaError, match="pipeline 'wrong': the query is wrong: A column"):
        ottla_pipelines.run(wrong)
    assert seen == ["Asia/Tokyo"]
    assert spark.conf.get("spark.sql.session.timeZone") == before


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.xdist_group("spark processes")
@pytest.mark.skipif(shutil.which("java") is None, reason="Java is not installed")
def test_pytest_runs_the_example_as_a_user_does(files: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", *load_plugin(), "test_sales.py"]
    done = subprocess.run(command, cwd=files, env=Cli().variables(), capture_output=True, text=True, timeout=600)
    assert "2 passed" in done.stdout, done.stdout + done.stderr
