"""What a session needs from the machine, checked before Spark fails in its own words: one sentence, with the remedy."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ottla.common.errors import OttlaError

JAVA_MIN = 17
_INSTALL = "run `pip install 'ottla[spark]'`"
# (package, lowest version, first version that is too new)
_PACKAGES = (("pyspark", (4, 2), (5,)), ("pyarrow", (18,), None), ("pandas", (2, 2), (3,)))


_CONNECT = (
    "Spark Connect is not supported: the driver writes what executors encode, so it must run in this process; "
    "take a session of a Spark master, such as local[*] or spark://host:7077{instead}."
)


def check(environment: Mapping[str, str] = os.environ, *, is_local: bool) -> None:
    """Raises OttlaError."""
    check_packages()
    check_java(environment)
    if is_local:
        check_worker_python(environment)


def check_packages() -> None:
    for name, low, high in _PACKAGES:
        try:
            found = version(name)
        except PackageNotFoundError:
            raise OttlaError(f"{name} is not installed: {_INSTALL}.") from None
        numbers = tuple(int(part) for part in re.findall(r"\d+", found)[:2])
        if numbers < low or (high is not None and numbers >= high):
            wanted = ".".join(map(str, low)) + (f" or newer, below {high[0]}" if high else " or newer")
            raise OttlaError(f"{name} {found} does not work here, {wanted} is needed: {_INSTALL}.")


def check_java(environment: Mapping[str, str]) -> None:
    home = environment.get("JAVA_HOME")
    java = shutil.which(Path(home, "bin", "java")) if home else shutil.which("java", path=environment.get("PATH"))
    install = "install one, for example with `apt-get install openjdk-17-jre-headless`, and set JAVA_HOME to it"
    if java is None:
        where = f"JAVA_HOME is {home}, where there is no Java" if home else "there is no Java here"
        raise OttlaError(f"Spark needs Java {JAVA_MIN} or newer and {where}: {install}.")
    told = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60)
    found = re.search(r'version "(?:1\.)?(\d+)', told.stderr + told.stdout)
    if found is None or int(found[1]) < JAVA_MIN:
        which = f"is {found[1]}" if found else "does not tell its version"
        raise OttlaError(f"Spark needs Java {JAVA_MIN} or newer and {java} {which}: {install}.")


def check_worker_python(environment: Mapping[str, str]) -> None:
    """Python workers must be of the driver's version."""
    python = environment.get("PYSPARK_PYTHON")
    if not python or python == sys.executable:
        return
    ours = f"{sys.version_info.major}.{sys.version_info.minor}"
    try:
        code = "import sys; print('%d.%d' % sys.version_info[:2])"
        told = subprocess.run([python, "-c", code], capture_output=True, text=True, timeout=60).stdout.strip()
    except OSError:
        told = ""
    if told != ours:
        what = f"is Python {told}" if told else "is no Python"
        raise OttlaError(f"PYSPARK_PYTHON is {python}, which {what}: unset it, or set it to {sys.executable}.")


def refuse_connect(session_or_frame: Any) -> None:
    """Of a session that is a client of another process."""
    if type(session_or_frame).__module__.startswith("pyspark.sql.connect"):
        raise OttlaError(_CONNECT.format(instead=""))


def refuse_connect_settings(master: str, conf: Mapping[str, str], environment: Mapping[str, str] = os.environ) -> None:
    if master.startswith("sc://") or "spark.remote" in conf or conf.get("spark.api.mode") == "connect":
        raise OttlaError(_CONNECT.format(instead=""))
    if "SPARK_REMOTE" in environment:
        raise OttlaError(_CONNECT.format(instead=", and unset SPARK_REMOTE"))
