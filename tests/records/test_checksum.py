"""The checksum comes from the package's compiled part, and from the package where that is not to be found."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from importlib.machinery import PathFinder
from typing import Any

import pytest

from ottla.records import checksum

# "123456789", as every list of checksums has it.
CHECK = 0xE3069283


@pytest.fixture
def reloaded() -> Iterator[None]:
    yield
    importlib.reload(checksum)


def test_it_is_crc32c() -> None:
    assert checksum.crc32c(b"123456789") == CHECK
    assert checksum.crc32c(memoryview(b"123456789")) == CHECK


@pytest.mark.usefixtures("reloaded")
def test_another_inside_of_the_package_is_no_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    import crc32c as package

    found: Any = PathFinder.find_spec
    # Imported whole already, so that its own inside may be hidden from us alone.
    assert sys.modules["crc32c"] is package
    monkeypatch.setattr(
        PathFinder, "find_spec", lambda name, *rest: None if name == "crc32c._crc32c" else found(name, *rest)
    )
    importlib.reload(checksum)
    assert checksum.crc32c is package.crc32c
    assert checksum.crc32c(b"123456789") == CHECK
