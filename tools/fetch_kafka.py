"""Fetches Apache Kafka's jars into `.cache/kafka/libs`, for the benchmark and for the tests that use the original.

Maven does the resolving, from whatever repositories it is configured with, so nothing here knows a host name. The jars
arrive in a folder next to the final one and are moved into place when complete: an interrupted run leaves nothing
that looks finished. Run it twice and the second run returns at once.

    python tools/fetch_kafka.py [--version 4.3.1] [--into DIR] [--force]

Exit status 0: the jars are there (their folder is the last line of stdout). 1: they are not, with one sentence why.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

KAFKA_VERSION = "4.3.1"
SCALA_VERSION = "2.13"
REPO_ROOT = Path(__file__).resolve().parent.parent
DEFAULT_FOLDER = REPO_ROOT / ".cache" / "kafka" / "libs"
PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
MAVEN_SECONDS_MAX = 900

# The broker and its tools; what runs beside it: Streams, Connect with a connector for files, MirrorMaker 2.
ARTIFACTS = (
    f"kafka_{SCALA_VERSION}",
    "kafka-tools",
    "kafka-streams",
    "connect-runtime",
    "connect-file",
    "connect-mirror",
)
POM = """\
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>ottla</groupId><artifactId>kafka-peer</artifactId><version>1</version>
  <dependencies>{dependencies}</dependencies>
</project>
"""
DEPENDENCY = """
    <dependency>
      <groupId>org.apache.kafka</groupId><artifactId>{artifact}</artifactId><version>{version}</version>
    </dependency>
"""


class CannotFetch(Exception):
    """Why the jars cannot be had, as one sentence for a person."""


def is_complete(folder: Path, version: str) -> bool:
    return all((folder / f"{artifact}-{version}.jar").is_file() for artifact in ARTIFACTS)


def fetch(folder: Path, version: str = KAFKA_VERSION) -> None:
    """Leaves the jars of `version` in `folder`, or raises CannotFetch."""
    maven = shutil.which("mvn")
    if maven is None:
        raise CannotFetch("Maven (`mvn`, Debian package `maven`) is not installed")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="fetching-", dir=folder.parent) as work:
        pom = Path(work) / "pom.xml"
        wanted = [DEPENDENCY.format(artifact=artifact, version=version) for artifact in ARTIFACTS]
        pom.write_text(POM.format(dependencies="".join(wanted)))
        arrived = Path(work) / "libs"
        command = [maven, "-B", "-q", "-f", str(pom), PLUGIN, f"-DoutputDirectory={arrived}", "-DincludeScope=runtime"]
        run_maven(command, f"Apache Kafka {version}")
        if not is_complete(arrived, version):
            raise CannotFetch(f"Maven ended well but did not bring all of {', '.join(ARTIFACTS)} {version}")
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
    parser = argparse.ArgumentParser(description="Fetch Apache Kafka's jars with Maven.")
    parser.add_argument("--version", default=KAFKA_VERSION)
    parser.add_argument("--into", type=Path, default=DEFAULT_FOLDER, help="folder for the jars (default: %(default)s)")
    parser.add_argument("--force", action="store_true", help="fetch again even if the jars are there")
    options = parser.parse_args()
    if options.force or not is_complete(options.into, options.version):
        try:
            fetch(options.into, options.version)
        except CannotFetch as error:
            print(f"Apache Kafka {options.version} is not available: {error}.", file=sys.stderr)
            return 1
    print(options.into)
    return 0


if __name__ == "__main__":
    sys.exit(main())
