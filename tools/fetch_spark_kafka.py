"""Fetches Spark's own Kafka connector into `.cache/spark-kafka`, which tests and benchmarks compare ours with.

PySpark does not bring it. This set of versions works together with PySpark 4.3; codecs come with PySpark itself.

    python tools/fetch_spark_kafka.py [--into DIR] [--force]

Exit status 0: the jars are there (their folder is the last line of stdout). 1: they are not, with one sentence why.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

from fetch_kafka import PLUGIN, REPO_ROOT, CannotFetch, run_maven

DEFAULT_FOLDER = REPO_ROOT / ".cache" / "spark-kafka"
ARTIFACTS = (
    ("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.2.0"),
    ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),
    ("org.apache.kafka", "kafka-clients", "3.9.1"),
    ("org.apache.commons", "commons-pool2", "2.12.0"),
)
_DEPENDENCY = """\
    <dependency>
      <groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>
      <exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>
    </dependency>
"""
POM = """\
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>ottla</groupId><artifactId>spark-peer</artifactId><version>1</version>
  <dependencies>
{}  </dependencies>
</project>
"""


def is_complete(folder: Path) -> bool:
    return all((folder / f"{name}-{version}.jar").is_file() for _, name, version in ARTIFACTS)


def fetch(folder: Path) -> None:
    """Leaves the jars in `folder`, or raises CannotFetch."""
    maven = shutil.which("mvn")
    if maven is None:
        raise CannotFetch("Maven (`mvn`, Debian package `maven`) is not installed")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="fetching-", dir=folder.parent) as work:
        pom = Path(work) / "pom.xml"
        pom.write_text(POM.format("".join(_DEPENDENCY.format(*one) for one in ARTIFACTS)))
        arrived = Path(work) / "jars"
        run_maven(
            [maven, "-B", "-q", "-f", str(pom), PLUGIN, f"-DoutputDirectory={arrived}"], "Spark's Kafka connector"
        )
        if not is_complete(arrived):
            raise CannotFetch("Maven ended well but did not bring all jars")
        if folder.exists():
            shutil.rmtree(folder)
        os.replace(arrived, folder)


def main() -> int:
    parser = argparse.ArgumentParser(description="Fetch Spark's Kafka connector with Maven.")
    parser.add_argument("--into", type=Path, default=DEFAULT_FOLDER, help="folder for the jars (default: %(default)s)")
    parser.add_argument("--force", action="store_true", help="fetch again even if the jars are there")
    options = parser.parse_args()
    if options.force or not is_complete(options.into):
        try:
            fetch(options.into)
        except CannotFetch as error:
            print(f"Spark's Kafka connector is not available: {error}.", file=sys.stderr)
            return 1
    print(options.into)
    return 0


if __name__ == "__main__":
    sys.exit(main())
