"""Fetches what the schema registry is compared with: Spark's own Avro, and Confluent's Java client for registries.

Confluent's jars are not on Maven Central, but Flink's connector for their registry is, with their client inside of it
under another package name, and so are its serialisers. They go to `.cache/spark-avro`, `.cache/registry-java` and
`.cache/flink-serdes`.

    python tools/fetch_registry_jars.py [--into DIR] [--force]

Exit status 0: the jars are there (their folders are the last lines of stdout). 1: they are not, with one sentence why.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

from fetch_kafka import PLUGIN, REPO_ROOT, CannotFetch, run_maven
from fetch_spark_kafka import _DEPENDENCY, POM

DEFAULT_FOLDER = REPO_ROOT / ".cache"
SETS = {
    "spark-avro": (("org.apache.spark", "spark-avro_2.13", "4.1.1"),),
    "registry-java": (
        ("org.apache.flink", "flink-sql-avro-confluent-registry", "1.20.0"),
        ("org.slf4j", "slf4j-api", "1.7.36"),
    ),
    "flink-serdes": (("org.apache.flink", "flink-core", "1.20.0"),),
}


def is_complete(folder: Path, name: str) -> bool:
    return all((folder / f"{artifact}-{version}.jar").is_file() for _, artifact, version in SETS[name])


def fetch(folder: Path, name: str) -> None:
    """Leaves the jars in `folder`, or raises CannotFetch."""
    maven = shutil.which("mvn")
    if maven is None:
        raise CannotFetch("Maven (`mvn`, Debian package `maven`) is not installed")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="fetching-", dir=folder.parent) as work:
        pom = Path(work) / "pom.xml"
        pom.write_text(POM.format("".join(_DEPENDENCY.format(*one) for one in SETS[name])))
        arrived = Path(work) / "jars"
        run_maven([maven, "-B", "-q", "-f", str(pom), PLUGIN, f"-DoutputDirectory={arrived}"], name)
        if not is_complete(arrived, name):
            raise CannotFetch("Maven ended well but did not bring all jars")
        if folder.exists():
            shutil.rmtree(folder)
        os.replace(arrived, folder)


def main() -> int:
    parser = argparse.ArgumentParser(description="Fetch Spark's Avro and a Java client of registries with Maven.")
    parser.add_argument("--into", type=Path, default=DEFAULT_FOLDER, help="folder for both (default: %(default)s)")
    parser.add_argument("--force", action="store_true", help="fetch again even if the jars are there")
    options = parser.parse_args()
    for name in SETS:
        folder = options.into / name
        if options.force or not is_complete(folder, name):
            try:
                fetch(folder, name)
            except CannotFetch as error:
                print(f"{name} is not available: {error}.", file=sys.stderr)
                return 1
        print(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
