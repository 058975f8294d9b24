"""Fetches Kafka Streams with its test driver into `.cache/kafka-streams`: the oracle for what Ottla Streams means.

    python tools/fetch_kafka_streams.py [--into DIR] [--force]

Exit status 0: the jars are there (their folder is the last line of stdout). 1: they are not, with one sentence why.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

from fetch_kafka import DEPENDENCY, KAFKA_VERSION, PLUGIN, POM, REPO_ROOT, CannotFetch, run_maven

DEFAULT_FOLDER = REPO_ROOT / ".cache" / "kafka-streams"
ARTIFACTS = ("kafka-streams", "kafka-streams-test-utils")


def is_complete(folder: Path) -> bool:
    return all((folder / f"{artifact}-{KAFKA_VERSION}.jar").is_file() for artifact in ARTIFACTS)


def fetch(folder: Path) -> None:
    """Leaves the jars in `folder`, or raises CannotFetch."""
    maven = shutil.which("mvn")
    if maven is None:
        raise CannotFetch("Maven (`mvn`, Debian package `maven`) is not installed")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="fetching-", dir=folder.parent) as work:
        pom = Path(work) / "pom.xml"
        wanted = [DEPENDENCY.format(artifact=artifact, version=KAFKA_VERSION) for artifact in ARTIFACTS]
        pom.write_text(POM.format(dependencies="".join(wanted)))
        arrived = Path(work) / "jars"
        command = [maven, "-B", "-q", "-f", str(pom), PLUGIN, f"-DoutputDirectory={arrived}"]
        run_maven(command, f"Kafka Streams {KAFKA_VERSION}")
        if not is_complete(arrived):
            raise CannotFetch("Maven ended well but did not bring all jars")
        if folder.exists():
            shutil.rmtree(folder)
        os.replace(arrived, folder)


def main() -> int:
    parser = argparse.ArgumentParser(description="Fetch Kafka Streams and its test driver with Maven.")
    parser.add_argument("--into", type=Path, default=DEFAULT_FOLDER, help="folder for the jars (default: %(default)s)")
    parser.add_argument("--force", action="store_true", help="fetch again even if the jars are there")
    options = parser.parse_args()
    if options.force or not is_complete(options.into):
        try:
            fetch(options.into)
        except CannotFetch as error:
            print(f"Kafka Streams is not available: {error}.", file=sys.stderr)
            return 1
    print(options.into)
    return 0


if __name__ == "__main__":
    sys.exit(main())
