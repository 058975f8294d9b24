"""Says at the end of a run which tests left file descriptors open, if they are many: a leak in a test, or in what it
tests, is else found when something else runs out of them. A plugin of pytest; also what workers of xdist leave counts.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import Any

import pytest

# What a test may leave: caches, connections of a Spark that all tests share.
LEFT_MAX = 25
TOLD_MAX = 10
_PROPERTY = "descriptors left open"
_before = pytest.StashKey[int]()


def count() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, Any, Any]:
    item.stash[_before] = count()
    return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, Any, Any]:
    try:
        return (yield)
    finally:
        left = count() - item.stash[_before]
        if left > LEFT_MAX:
            item.user_properties.append((_PROPERTY, left))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    found = {
        report.nodeid: value
        for reports in terminalreporter.stats.values()
        for report in reports
        if isinstance(report, pytest.TestReport)
        for name, value in report.user_properties
        if name == _PROPERTY
    }
    most = sorted(found.items(), key=lambda one: -one[1])
    for nodeid, left in most[:TOLD_MAX]:
        terminalreporter.write_line(f"{left:6,} descriptors were left open by {nodeid}")
