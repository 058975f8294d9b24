"""Java's Avro, from PySpark's jars: what it says about pairs of schemas."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import pytest

_JARS = re.compile(r"(avro|jackson-core|jackson-databind|jackson-annotations|slf4j-api|commons-compress)-\d[\d.]*\.jar")
_SOURCE = Path(__file__).with_name("AvroOracle.java")


class Verdict(NamedTuple):
    word: str
    text: str


def require_avro_jars() -> list[Path]:
    spec = find_spec("pyspark")
    folders = list(spec.submodule_search_locations or ()) if spec is not None else []
    found = [path for folder in folders for path in Path(folder, "jars").glob("*.jar") if _JARS.fullmatch(path.name)]
    if not any(path.name.startswith("avro-") for path in found):
        pytest.skip("Avro's jar comes with PySpark, which is not installed")
    if shutil.which("java") is None:
        pytest.skip("Java is not installed")
    return found


def judge(pairs: list[tuple[Any, Any]]) -> list[Verdict]:
    jars = require_avro_jars()
    lines = "\n".join(json.dumps(schema) for pair in pairs for schema in pair) + "\n"
    command = ["java", "-Xshare:auto", "-cp", os.pathsep.join(map(str, jars)), str(_SOURCE)]
    answer = subprocess.run(command, input=lines.encode(), capture_output=True, check=True, timeout=600)
    rows = answer.stdout.decode().splitlines()
    assert len(rows) == len(pairs), answer.stderr.decode()
    return [Verdict(*row.split("\t", 1)) for row in rows]
