"""Every test of the kernel runs on the compiled module and on its twin."""

from __future__ import annotations

import importlib
from types import ModuleType

import pytest

pytest.importorskip("pyarrow")


@pytest.fixture(params=["compiled", "pure"], scope="session")
def decode(request: pytest.FixtureRequest) -> ModuleType:
    if request.param == "pure":
        return importlib.import_module("ottla.kernel.decode_pure")
    try:
        return importlib.import_module("ottla.kernel._decode")
    except ImportError:
        pytest.skip("the kernel is not compiled here: run `python hatch_build.py`")
