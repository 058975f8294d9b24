"""Get what some tests need beyond PyPI, where it can be had: Java, Kafka's jars, Spark's connector, kcat, Prometheus.

Never fails: tests skip instead.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

TOOLS = Path(__file__).parent


def install_java() -> str | None:
    done = subprocess.run([str(TOOLS / "java")], capture_output=True, text=True)
    return None if done.returncode == 0 else "Java 17 or newer could not be installed"


def fetch_jars(script: str) -> str | None:
    """Why there are no jars, or None."""
    done = subprocess.run([sys.executable, str(TOOLS / script)], capture_output=True, text=True)
    return None if done.returncode == 0 else (done.stdout + done.stderr).strip().splitlines()[-1]


def install_package(package: str, *commands: str) -> str | None:
    """One of Debian's, unless one of its commands is there already."""
    if any(shutil.which(command) for command in commands):
        return None
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return f"{package} is not installed: apt-get install {package}"
    install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", package]
    for command in (["apt-get", "update", "-qq"], install):
        done = subprocess.run(
            command, capture_output=True, text=True, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        )
    return None if done.returncode == 0 else f"{package} could not be installed with apt-get"


def main() -> None:
    wanted: tuple[tuple[str, Callable[[], str | None]], ...] = (
        ("Java", install_java),
        ("Apache Kafka's jars", partial(fetch_jars, "fetch_kafka.py")),
        ("Kafka Streams' jars", partial(fetch_jars, "fetch_kafka_streams.py")),
        ("Spark's Kafka connector", partial(fetch_jars, "fetch_spark_kafka.py")),
        ("a Java client of registries", partial(fetch_jars, "fetch_registry_jars.py")),
        ("kcat", partial(install_package, "kcat", "kcat", "kafkacat")),
        ("Prometheus", partial(install_package, "prometheus", "promtool")),
    )
    for name, fetch in wanted:
        try:
            reason = fetch()
        except OSError as error:
            reason = str(error)
        if reason:
            print(f"without {name}, tests that need it are skipped: {reason}")


if __name__ == "__main__":
    main()
