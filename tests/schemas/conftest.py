"""Tests of Avro's columns run on the compiled kernel and on its twin."""

from __future__ import annotations

import importlib
from types import ModuleType

import pytest

import ottla.schemas.avro.resolving as resolving
import ottla.schemas.avro.writing as writing
import ottla.schemas.columns as columns

pytest.importorskip("pyarrow")


@pytest.fixture(params=["compiled", "pure"])
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """What `ottla.schemas` uses."""
    if request.param == "pure":
        module, encode = (importlib.import_module(f"ottla.kernel.{name}_pure") for name in ("avro", "avro_encode"))
    else:
        try:
            module, encode = (importlib.import_module(f"ottla.kernel._{name}") for name in ("avro", "avro_encode"))
        except ImportError:
            pytest.skip("the kernel is not compiled here: run `python hatch_build.py`")
    monkeypatch.setattr(resolving, "AvroProgram", module.AvroProgram)
    monkeypatch.setattr(columns, "AvroDecoder", module.AvroDecoder)
    monkeypatch.setattr(columns, "schema_ids", module.schema_ids)
    monkeypatch.setattr(writing, "AvroEncoder", encode.AvroEncoder)
    return module
