"""Fetches jars into `.cache`: what tests and benchmarks compare Ottla with, and Java clients that talk to it.

Maven does the resolving, from whatever repositories it is configured with, so nothing here knows a host name. The jars
arrive in a folder next to the final one and are moved into place when complete: an interrupted run leaves nothing
that looks finished. Run it twice and the second run returns at once.

    python tools/fetch_jars.py [--force] [SET ...]

Exit status 0: the jars of all sets are there (their folders are the lines of stdout). 1: some are not, with one
sentence why for each.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

CACHE = Path(__file__).resolve().parent.parent / ".cache"
KAFKA = "4.3.1"
PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
MAVEN_SECONDS_MAX = 900

_POM = """\
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>ottla</groupId><artifactId>{name}</artifactId><version>1</version>
  <dependencies>
{dependencies}  </dependencies>
</project>
"""
_DEPENDENCY = """\
    <dependency>
      <groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>{}
    </dependency>
"""
_NOTHING_ELSE = "\n      <exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"


@dataclass(frozen=True, slots=True)
class JarSet:
    what: str
    folder: str
    artifacts: tuple[tuple[str, str, str], ...]
    # Whether Maven also brings what the artifacts need; where PySpark has it already, or nothing uses it, it does not.
    brings_dependencies: bool = False


def _of_kafka(*names: str) -> tuple[tuple[str, str, str], ...]:
    return tuple(("org.apache.kafka", name, KAFKA) for name in names)


SETS = {
    # The broker and its tools; what runs beside it: Streams, Connect with a connector for files, MirrorMaker 2.
    "kafka": JarSet(
        f"Apache Kafka {KAFKA}",
        "kafka/libs",
        _of_kafka("kafka_2.13", "kafka-tools", "kafka-streams", "connect-runtime", "connect-file", "connect-mirror"),
        brings_dependencies=True,
    ),
    # The oracle for what Ottla Streams means.
    "kafka-streams": JarSet(
        f"Kafka Streams {KAFKA} with its test driver",
        "kafka-streams",
        _of_kafka("kafka-streams", "kafka-streams-test-utils"),
        brings_dependencies=True,
    ),
    # PySpark does not bring its connector. These versions work together with PySpark 4.3.
    "spark-kafka": JarSet(
        "Spark's Kafka connector",
        "spark-kafka",
        (
            ("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.2.0"),
            ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),
            ("org.apache.kafka", "kafka-clients", "3.9.1"),
            ("org.apache.commons", "commons-pool2", "2.12.0"),
        ),
    ),
    "spark-avro": JarSet("Spark's Avro", "spark-avro", (("org.apache.spark", "spark-avro_2.13", "4.1.1"),)),
    # Confluent's jars are not on Maven Central, but Flink's connector for their registry is, with their client inside
    # of it under another package name, and so are its serialisers.
    "registry-java": JarSet(
        "Confluent's Java client of registries",
        "registry-java",
        (
            ("org.apache.flink", "flink-sql-avro-confluent-registry", "1.20.0"),
            ("org.slf4j", "slf4j-api", "1.7.36"),
        ),
    ),
    "flink-serdes": JarSet("Flink's serialisers", "flink-serdes", (("org.apache.flink", "flink-core", "1.20.0"),)),
}


class CannotFetch(Exception):
    """Why the jars cannot be had, as one sentence for a person."""


def is_complete(wanted: JarSet, folder: Path) -> bool:
    return all((folder / f"{artifact}-{version}.jar").is_file() for _, artifact, version in wanted.artifacts)


def fetch(name: str, folder: Path) -> None:
    """Leaves the jars of a set in `folder`, or raises CannotFetch."""
    wanted = SETS[name]
    maven = shutil.which("mvn")
    if maven is None:
        raise CannotFetch("Maven (`mvn`, Debian package `maven`) is not installed")
    alone = "" if wanted.brings_dependencies else _NOTHING_ELSE
    dependencies = "".join(_DEPENDENCY.format(*artifact, alone) for artifact in wanted.artifacts)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="fetching-", dir=folder.parent) as work:
        pom, arrived = Path(work) / "pom.xml", Path(work) / "jars"
        pom.write_text(_POM.format(name=name, dependencies=dependencies))
        copy = [maven, "-B", "-q", "-f", str(pom), PLUGIN, f"-DoutputDirectory={arrived}", "-DincludeScope=runtime"]
        run_maven(copy, wanted.what)
        if not is_complete(wanted, arrived):
            raise CannotFetch("Maven ended well but did not bring all jars")
        if folder.exists():
            shutil.rmtree(folder)
        os.replace(arrived, folder)


def run_maven(command: list[str], what: str) -> None:
    """Raises CannotFetch, with Maven's first complaint."""
    try:
        outcome = subprocess.run(command, capture_output=True, text=True, timeout=MAVEN_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        raise CannotFetch(f"Maven did not finish within {MAVEN_SECONDS_MAX} seconds") from None
    if outcome.returncode != 0:
        lines = [line for line in (outcome.stdout + outcome.stderr).splitlines() if line.startswith("[ERROR]")]
        reason = lines[0].removeprefix("[ERROR]").strip() if lines else f"exit status {outcome.returncode}"
        raise CannotFetch(f"Maven could not resolve {what}: {reason}")


def main() -> int:
    parser = argparse.ArgumentParser(description="Fetch jars with Maven.", epilog="SET is one of " + ", ".join(SETS))
    parser.add_argument("sets", nargs="*", metavar="SET", help="which jars (default: all)")
    parser.add_argument("--force", action="store_true", help="fetch them again even if they are there")
    options = parser.parse_args()
    unknown = [name for name in options.sets if name not in SETS]
    if unknown:
        parser.error(f"there is no set {unknown[0]}: take {', '.join(SETS)}")
    status = 0
    for name in options.sets or SETS:
        folder = CACHE / SETS[name].folder
        if options.force or not is_complete(SETS[name], folder):
            try:
                fetch(name, folder)
            except CannotFetch as error:
                print(f"{SETS[name].what} cannot be had: {error}.", file=sys.stderr)
                status = 1
                continue
        print(folder)
    return status


if __name__ == "__main__":
    sys.exit(main())
