"""`make test-quick` runs what stays in its own process, and nobody has to say so."""

from __future__ import annotations

import pytest

from tests.conftest import is_quick

HELPER = """
import subprocess, pytest

@pytest.fixture
def child():
    return subprocess
"""


@pytest.fixture(autouse=True)
def _settings(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nmarkers = slow\nasyncio_default_fixture_loop_scope = function")


def test_a_test_is_quick_until_something_at_hand_starts_processes(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(HELPER)
    source = """
        import pytest

        def test_alone(tmp_path): ...
        def test_with_a_child(child): ...
        @pytest.mark.slow
        def test_long(): ...
    """
    items = pytester.getitems(source)
    assert {item.name: is_quick(item) for item in items} == {
        "test_alone": True,
        "test_with_a_child": False,
        "test_long": False,
    }


def test_a_module_that_has_them_at_hand_is_not_quick(pytester: pytest.Pytester) -> None:
    (item,) = pytester.getitems("from tests.support.brokers import OttlaProcess\ndef test_alone(): ...")
    assert not is_quick(item)
