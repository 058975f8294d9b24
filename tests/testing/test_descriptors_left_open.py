"""The summary of a run names tests that leave many descriptors open, and no others."""

from __future__ import annotations

import pytest

LEAK = """
import os
kept = []
def test_leaks():
    kept.extend(os.open("/dev/null", os.O_RDONLY) for _ in range(40))
def test_closes():
    for _ in range(40):
        os.close(os.open("/dev/null", os.O_RDONLY))
def test_the_end():
    for one in kept:
        os.close(one)
"""


def test_a_leak_is_told(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(LEAK)
    told = pytester.runpytest("-p", "tests.support.descriptors", "-p", "no:cacheprovider").stdout.str()
    assert "40 descriptors were left open by test_a_leak_is_told.py::test_leaks" in told
    assert "test_closes" not in told
