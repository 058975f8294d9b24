"""Tests of a group run in one worker: else several Sparks would share two cores, and the suite takes twice its time."""

from __future__ import annotations

from importlib import import_module

import pytest

GROUPED = """
import os
import pytest

pytestmark = pytest.mark.xdist_group("one worker")

@pytest.mark.parametrize("number", range(6))
def test_says_where_it_runs(number):
    print("ran in", os.environ["PYTEST_XDIST_WORKER"])
"""


def test_a_group_stays_in_one_worker(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(GROUPED)
    arguments = ["-n", "2", "--dist", "loadgroup", "--no-loadscope-reorder", "-rP", "-p", "no:ottla"]
    result = pytester.runpytest_subprocess(*arguments)
    result.assert_outcomes(passed=6)
    assert len({line for line in result.outlines if line.startswith("ran in")}) == 1


@pytest.mark.parametrize("folder", ["spark", "cluster"])
def test_a_folder_that_groups_its_tests_does_so_before_xdist_looks(folder: str) -> None:
    """Else `pytest tests/spark -n 2` starts two Sparks: a folder that is named is read before xdist is there."""
    hook = import_module(f"tests.{folder}.conftest").pytest_collection_modifyitems
    assert hook.pytest_impl["tryfirst"] is True
