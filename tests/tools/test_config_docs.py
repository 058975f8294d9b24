"""docs/configuration.md says what the code says."""

from __future__ import annotations

import importlib.util
from types import ModuleType

import pytest

from ottla.common.config import BrokerConfig
from tests.support.kafka_jars import REPO_ROOT


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("config_docs", REPO_ROOT / "tools" / "generate_config_docs.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_up_to_date(generator: ModuleType) -> None:
    assert generator.TARGET.read_text() == generator.document(), "run make docs"


def test_every_property_is_on_the_page(generator: ModuleType) -> None:
    page = generator.document()
    assert [name for name in BrokerConfig.known() if f"`{name}`" not in page] == []


def test_what_each_api_needs_is_on_its_page() -> None:
    spec = importlib.util.spec_from_file_location("access_docs", REPO_ROOT / "tools" / "generate_access_docs.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.TARGET.read_text() == module.document(), "run make docs"
