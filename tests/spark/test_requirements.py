"""What a machine lacks is said in one sentence, with the remedy."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

import ottla.spark
from ottla.common.errors import OttlaError
from ottla.spark import requirements
from ottla.spark.session_builder import _local_defaults
from ottla.spark.ship import package_zip


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_no_java(tmp_path: Path) -> None:
    with pytest.raises(OttlaError, match=r"Spark needs Java 17 or newer and there is no Java here: install one"):
        requirements.check_java({"PATH": str(tmp_path)})
    with pytest.raises(OttlaError, match=f"JAVA_HOME is {tmp_path}, where there is no Java"):
        requirements.check_java({"JAVA_HOME": str(tmp_path)})


@pytest.mark.parametrize(("told", "version"), [('openjdk version "11.0.2"', "11"), ('java version "1.8.0_1"', "8")])
def test_an_old_java(tmp_path: Path, told: str, version: str) -> None:
    script(tmp_path / "java", f"echo '{told}' >&2")
    with pytest.raises(OttlaError, match=f"java is {version}: install one"):
        requirements.check_java({"PATH": f"{tmp_path}:/usr/bin:/bin"})


def test_a_new_java(tmp_path: Path) -> None:
    script(tmp_path / "bin" / "java", "echo 'openjdk version \"21.0.1\"' >&2")
    requirements.check_java({"JAVA_HOME": str(tmp_path)})


def test_workers_of_another_python(tmp_path: Path) -> None:
    other = script(tmp_path / "python", "echo 3.9")
    with pytest.raises(OttlaError, match=f"PYSPARK_PYTHON is {other}, which is Python 3.9: unset it"):
        requirements.check_worker_python({"PYSPARK_PYTHON": str(other)})
    with pytest.raises(OttlaError, match="which is no Python"):
        requirements.check_worker_python({"PYSPARK_PYTHON": str(tmp_path / "nothing")})
    requirements.check_worker_python({"PYSPARK_PYTHON": sys.executable})
    requirements.check_worker_python({})


def test_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    requirements.check_packages()
    monkeypatch.setattr(requirements, "version", lambda name: "3.5.1")
    with pytest.raises(OttlaError, match=r"pyspark 3.5.1 does not work here, 4.2 or newer, below 5 is needed: run"):
        requirements.check_packages()


def test_shuffles_have_as_many_tasks_as_a_local_spark_has_cores() -> None:
    assert _local_defaults("local[3]")["spark.sql.shuffle.partitions"] == "3"
    assert _local_defaults("local[2,8]")["spark.sql.shuffle.partitions"] == "2"
    assert _local_defaults("local")["spark.sql.shuffle.partitions"] == "1"


def test_what_is_shipped_is_what_executors_need() -> None:
    names = set(zipfile.ZipFile(package_zip()).namelist())
    assert {"ottla/__init__.py", "ottla/kernel/encode_pure.py", "ottla/protocol/messages.json"} <= names
    assert not any(name.startswith(("ottla/broker/", "ottla/cli/")) for name in names)


def test_what_is_shipped_is_removed_when_the_driver_ends() -> None:
    code = "from ottla.spark.ship import package_zip; print(package_zip())"
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    assert made.endswith("ottla.zip")
    assert not Path(made).parent.exists()


def test_what_the_package_offers_is_the_same_every_time_it_is_asked_for() -> None:
    import ottla.spark

    for name in ottla.spark.__all__:
        assert callable(getattr(ottla.spark, name))
        assert callable(getattr(ottla.spark, name)), name


def test_spark_connect_is_refused_in_one_sentence() -> None:
    class Remote:
        pass

    Remote.__module__ = "pyspark.sql.connect.session"
    frame: Any = Remote()
    for use in (
        lambda: ottla.spark.register(frame),
        lambda: ottla.spark.write_stream(frame, name="n", bootstrap="b", checkpoint="c"),
        lambda: ottla.spark.session(app="a", master="sc://host"),
        lambda: ottla.spark.session(app="a", **{"spark.remote": "local"}),
    ):
        with pytest.raises(OttlaError, match="Spark Connect is not supported"):
            use()


def test_spark_connect_in_the_environment_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_REMOTE", "sc://host")
    with pytest.raises(OttlaError, match="unset SPARK_REMOTE"):
        ottla.spark.session(app="a")
