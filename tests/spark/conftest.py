"""One local Spark for all tests of a run that are content with it: it takes seconds to start.

Tests that start Spark in processes of their own are the group "spark processes", one after the other as well.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.kafka_jars import REPO_ROOT, spark_connector_jars

pytest.importorskip("pyspark")

HERE = Path(__file__).parent
# Beside a full load Spark alone takes minutes to start: what is to be found is what never ends.
SLOW_TIMEOUT_S = 1800


# First, also where the folder is named on the command line: xdist must see the groups when it names the tests.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents and "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
            item.add_marker(pytest.mark.xdist_group("spark"))
        is_slow = HERE in item.path.parents and item.get_closest_marker("slow") is not None
        if is_slow and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(SLOW_TIMEOUT_S))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    if shutil.which("java") is None:
        pytest.skip("Java is not installed")
    from pyspark.sql import SparkSession

    import ottla.spark

    # Python workers are children of the JVM: what they import comes from the environment it starts with.
    os.environ["PYTHONPATH"] = os.pathsep.join([str(REPO_ROOT / "src"), os.environ.get("PYTHONPATH", "")]).strip(":")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    scratch = tmp_path_factory.mktemp("spark")
    session = (
        SparkSession.builder.appName("ottla-tests")
        .master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.local.dir", str(scratch / "local"))
        .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.jars", ",".join(map(str, spark_connector_jars())))
        .config("spark.python.unix.domain.socket.enabled", "true")
        .getOrCreate()
    )
    ottla.spark.register(session)
    yield session
    session.stop()
