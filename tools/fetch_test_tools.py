"""Get what some tests need beyond PyPI, where it can be had: Java, Kafka's jars, Spark's connector, kcat, strace,
Prometheus, PostgreSQL, MariaDB and Chromium.

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


def fetch_jars(*sets: str) -> str | None:
    """Why there are no jars, or None."""
    done = subprocess.run([sys.executable, str(TOOLS / "fetch_jars.py"), *sets], capture_output=True, text=True)
    return None if done.returncode == 0 else (done.stdout + done.stderr).strip().splitlines()[-1]


def install_package(package: str, *commands: str) -> str | None:
    """One of Debian's, unless one of its commands is there already."""
    if any(shutil.which(command) for command in commands):
        return None
    return apt_install(package)


def install_databases() -> str | None:
    """PostgreSQL and MariaDB for tests that start their own; the packages' services are not to run beside them."""
    missing = [
        package
        for package, is_there in (
            ("postgresql", any(Path("/usr/lib/postgresql").glob("*/bin/initdb"))),
            ("mariadb-server", shutil.which("mariadbd", path=f"{os.environ.get('PATH', '')}:/usr/sbin") is not None),
        )
        if not is_there
    ]
    if not missing:
        return None
    policy = Path("/usr/sbin/policy-rc.d")
    is_ours = os.geteuid() == 0 and not policy.exists()
    if is_ours:
        policy.write_text("#!/bin/sh\nexit 101\n")
        policy.chmod(0o755)
    try:
        return apt_install(*missing)
    finally:
        if is_ours:
            policy.unlink()


def apt_install(*packages: str) -> str | None:
    names = " and ".join(packages)
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return f"{names} cannot be installed by this user: apt-get install {' '.join(packages)}"
    install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages]
    for command in (["apt-get", "update", "-qq"], install):
        done = subprocess.run(
            command, capture_output=True, text=True, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        )
    return None if done.returncode == 0 else f"{names} could not be installed with apt-get"


def fetch_axe() -> str | None:
    """The accessibility checker, from npm: one file that the browser of a test runs."""
    target = TOOLS.parent / ".cache" / "npm" / "axe-core.tgz"
    if target.is_file():
        return None
    if not shutil.which("npm"):
        return "npm is not installed"
    target.parent.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        ["npm", "pack", "axe-core@4", "--silent"], cwd=target.parent, capture_output=True, text=True, timeout=120
    )
    packed = sorted(target.parent.glob("axe-core-*.tgz"))
    if done.returncode or not packed:
        return "axe-core could not be fetched from npm"
    packed[-1].replace(target)
    return None


def main() -> None:
    wanted: tuple[tuple[str, Callable[[], str | None]], ...] = (
        ("Java", install_java),
        ("Apache Kafka's jars", partial(fetch_jars, "kafka")),
        ("Kafka Streams' jars", partial(fetch_jars, "kafka-streams")),
        ("Spark's Kafka connector", partial(fetch_jars, "spark-kafka")),
        ("a Java client of registries", partial(fetch_jars, "spark-avro", "registry-java", "flink-serdes")),
        ("kcat", partial(install_package, "kcat", "kcat", "kafkacat")),
        ("strace", partial(install_package, "strace", "strace")),
        ("Prometheus", partial(install_package, "prometheus", "promtool")),
        ("PostgreSQL and MariaDB", install_databases),
        ("Chromium", partial(install_package, "chromium", "chromium")),
        ("Chromium's driver", partial(install_package, "chromium-driver", "chromedriver")),
        ("axe-core", fetch_axe),
    )
    for name, fetch in wanted:
        try:
            reason = fetch()
        except (OSError, subprocess.TimeoutExpired) as error:
            reason = str(error)
        if reason:
            print(f"without {name}, tests that need it are skipped: {reason}")


if __name__ == "__main__":
    main()
