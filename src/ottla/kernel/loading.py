"""Finds the compiled form of a kernel module, or its twin in plain Python.

Where the package is installed the compiled module stands next to this file. On Spark's executors the package is a zip
file, which cannot hold shared libraries: there the file was shipped on its own, into a folder of the search path.

The twins work without a word: who only asks for a list of pipelines does not care. A session of Spark says once that
records will be slow (`slow_notice`); executors elsewhere, which it cannot know about, say so in their own logs.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import os
import sys
import warnings
from pathlib import Path
from types import ModuleType

# Set to use the twins even where the kernel is compiled: to compare them, or to rule the kernel out.
PURE_VARIABLE = "OTTLA_PURE_KERNEL"
NOTICE = (
    "Ottla's compiled kernel is not there: records are handled in plain Python and far slower. "
    "Install a C compiler and Python's headers (`apt-get install gcc python3-dev`), then Ottla again."
)
_told: set[str] = set()


def load(compiled: str, twin: str) -> ModuleType:
    """`load("_decode", "decode_pure")`: the better one that works here."""
    if not os.environ.get(PURE_VARIABLE):
        found = _installed(compiled) or _shipped(compiled)
        if found is not None:
            return found
        if not Path(__file__).is_file() and (notice := slow_notice()) is not None:
            warnings.warn(notice, RuntimeWarning, stacklevel=2)
    return importlib.import_module(f"{__package__}.{twin}")


def is_compiled(module: ModuleType) -> bool:
    return not str(module.__file__).endswith(".py")


def _installed(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(f"{__package__}.{name}")
    except ImportError:
        return None


def _shipped(name: str) -> ModuleType | None:
    full_name = f"{__package__}.{name}"
    for folder in sys.path:
        for suffix in importlib.machinery.EXTENSION_SUFFIXES:
            path = Path(folder, name + suffix)
            if not path.is_file():
                continue
            loader = importlib.machinery.ExtensionFileLoader(full_name, str(path))
            spec = importlib.util.spec_from_file_location(full_name, path, loader=loader)
            try:
                assert spec is not None
                module = importlib.util.module_from_spec(spec)
                loader.exec_module(module)
            except ImportError:
                continue  # of another Python, or of another machine
            sys.modules[full_name] = module
            return module
    return None


def slow_notice() -> str | None:
    """What to tell people whose records will be slow, the first time in this process."""
    if _told or os.environ.get(PURE_VARIABLE) or _installed("_decode") or _shipped("_decode"):
        return None
    _told.add(NOTICE)
    return NOTICE
