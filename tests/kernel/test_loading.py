"""Which kernel is used: the installed one, one that was shipped beside a zip of the package, or the twin."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support.kafka_jars import REPO_ROOT

PACKAGE = REPO_ROOT / "src" / "ottla"
SHOW = """
import warnings
with warnings.catch_warnings(record=True) as heard:
    warnings.simplefilter("always")
    from ottla.kernel import decode
    from ottla.protocol import codec
print(decode.IS_COMPILED, decode.Decoder(b"", 0, 1).next_columns(), len(heard), codec.definition("FetchRequest")["key"])
"""


def compiled_file() -> Path:
    try:
        found = importlib.import_module("ottla.kernel._decode").__file__
    except ImportError:
        pytest.skip("the kernel is not compiled here: run `python hatch_build.py`")
    assert found is not None
    return Path(found)


@pytest.fixture
def zipped(tmp_path: Path) -> Path:
    """The package as executors get it."""
    path = tmp_path / "ottla.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for file in [*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.json")]:
            archive.write(file, file.relative_to(PACKAGE.parent))
    return path


def shown(*search_path: Path, **environment: str) -> list[str]:
    variables = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, search_path))} | environment
    done = subprocess.run([sys.executable, "-c", SHOW], env=variables, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_the_installed_kernel_is_used() -> None:
    compiled_file()
    assert shown(PACKAGE.parent) == ["True", "None", "0", "1"]


def test_without_one_the_twin_is_used_with_one_warning(zipped: Path) -> None:
    assert shown(zipped) == ["False", "None", "1", "1"]


# A stand-in for Spark that takes what it is given.
SESSIONS = """
from unittest.mock import MagicMock, patch
from ottla.spark.source import datasource
with patch.object(datasource, "_spool_of", return_value="none is needed here"):
    for _ in range(2):
        datasource.register(MagicMock())
"""


def test_an_installation_without_one_says_so_when_spark_begins_and_not_before(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    shutil.copytree(PACKAGE, tmp_path / "ottla", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    mistake = [sys.executable, "-m", "ottla", "pipeline", "run", str(tmp_path / "gone.py")]
    variables = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run(mistake, env=variables, capture_output=True, text=True, timeout=60)
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1), done.stderr

    done = subprocess.run([sys.executable, "-c", SESSIONS], env=variables, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("Ottla's compiled kernel is not there") == 1


def test_one_that_lies_beside_the_zip_is_found(zipped: Path, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    shutil.copy(compiled_file(), folder)
    assert shown(zipped, folder) == ["True", "None", "0", "1"]


def test_one_that_does_not_load_is_passed_over(zipped: Path, tmp_path: Path) -> None:
    (tmp_path / compiled_file().name).write_bytes(b"nonsense")
    assert shown(zipped, tmp_path) == ["False", "None", "1", "1"]


def test_the_twin_can_be_chosen() -> None:
    assert shown(PACKAGE.parent, OTTLA_PURE_KERNEL="1") == ["False", "None", "0", "1"]
