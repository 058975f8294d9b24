"""CRC-32C, from the compiled part of the package `crc32c` alone.

The package as a whole imports what it needs to tell its version and to be a command: 3.5 MB and 15 ms of every start of
a broker, a tenth of either. Where its inside is not as expected, the package is imported as it wants to be.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any


def _compiled_part() -> ModuleType | None:
    package = find_spec("crc32c")
    places = package.submodule_search_locations if package is not None else None
    found = PathFinder.find_spec("crc32c._crc32c", places) if places else None
    if found is None or found.loader is None:
        return None
    module = module_from_spec(found)
    found.loader.exec_module(module)
    return module


crc32c: Callable[[Any], int]
try:
    crc32c = _compiled_part().crc32c  # type: ignore[union-attr]
except AttributeError:
    import crc32c as _package

    crc32c = _package.crc32c
