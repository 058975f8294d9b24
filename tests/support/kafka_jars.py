"""Where Apache Kafka's jars are, and how a test says that it needs them.

`OTTLA_KAFKA_LIBS` names a folder of jars; without it `.cache/kafka/libs` of the repository is used, which
`python tools/fetch_jars.py kafka` fills. A test that needs them takes `require_kafka_libs()`, and is skipped with the
reason where they cannot be had.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

REPO_ROOT = Path(__file__).resolve().parents[2]
CACHE = REPO_ROOT / ".cache"
# For a JVM that lives for seconds beside others: the optimising compiler and a parallel collector cost more than they
# give. With these a tool of Kafka's takes half the processor time.
QUICK_JVM = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")


def kafka_libs() -> Path | None:
    """The folder with kafka_2.13, kafka-tools and what they need, or None."""
    named = os.environ.get("OTTLA_KAFKA_LIBS")
    folder = Path(named) if named else CACHE / "kafka" / "libs"
    return folder if any(folder.glob("kafka_2.13-*.jar")) else None


def spark_connector_jars() -> list[Path]:
    """Spark's own Kafka connector, or nothing: `python tools/fetch_jars.py spark-kafka` fetches it."""
    return sorted((CACHE / "spark-kafka").glob("*.jar"))


def spark_avro_jars() -> list[Path]:
    """Spark's own Avro, or nothing: `python tools/fetch_jars.py spark-avro` fetches it."""
    return sorted((CACHE / "spark-avro").glob("*.jar"))


def registry_client_jars() -> list[Path]:
    """Confluent's Java client of registries, or nothing: the same tool fetches them."""
    return sorted((CACHE / "registry-java").glob("*.jar"))


def flink_serde_jars() -> list[Path]:
    """What Flink's serialisers for that client need beside it, or nothing: the same tool fetches it."""
    return sorted((CACHE / "flink-serdes").glob("*.jar"))


def java() -> str | None:
    return shutil.which("java")


def quick_java(heap: str = "256m") -> list[str]:
    """The beginning of a command that runs a Java program for a moment."""
    return [str(java()), f"-Xmx{heap}", *QUICK_JVM]


def why_no_kafka() -> str | None:
    """One sentence when Kafka's jars cannot be run here, None when they can."""
    if java() is None:
        return "Java is not installed"
    if kafka_libs() is None:
        return "Apache Kafka's jars are not there: run `python tools/fetch_jars.py kafka` or set OTTLA_KAFKA_LIBS"
    return None


def require_kafka_libs() -> Path:
    """The jars' folder; skips the calling test with the reason when Kafka cannot be run here."""
    reason = why_no_kafka()
    if reason is not None:
        pytest.skip(reason)
    libs = kafka_libs()
    assert libs is not None
    return libs


def class_path(libs: Path, *more: Path) -> str:
    return os.pathsep.join([*map(str, more), f"{libs}/*"])
