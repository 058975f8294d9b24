"""Our code on executors that have only PySpark and PyArrow: shipped with the job, nothing is installed.

The package goes as a zip file. Shared libraries cannot be loaded from one, so the compiled kernel goes beside it, file
by file; `ottla.kernel.loading` finds it there, or does without where it was compiled for another Python.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
import zipfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import ottla

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PACKAGE = Path(ottla.__file__).parent
# What executors run, and what that imports.
ROOMS = ("common", "protocol", "kernel", "avro", "exposition", "client", "schemas", "spark", "connect", "streams")
_SUFFIXES = (".py", ".json")


def ship(spark: SparkSession) -> None:
    """Once for each session; a second time changes nothing."""
    context = spark.sparkContext
    for path in (package_zip(), *compiled_kernel()):
        context.addPyFile(str(path))


@cache
def package_zip() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="ottla-ship-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)  # executors fetch it from there for as long as we live
    target = folder / "ottla.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(_PACKAGE / "__init__.py", "ottla/__init__.py")
        for room in ROOMS:
            for path in sorted((_PACKAGE / room).rglob("*")):
                if path.suffix in _SUFFIXES:
                    archive.write(path, f"ottla/{path.relative_to(_PACKAGE)}")
    return target


def compiled_kernel() -> list[Path]:
    return sorted((_PACKAGE / "kernel").glob("*.so"))
