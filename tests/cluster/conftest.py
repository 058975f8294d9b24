"""All tests of whole clusters run one after the other: each takes more than a machine of two cores has."""

from __future__ import annotations

import pytest


# First, also where the folder is named on the command line: xdist must see the groups when it names the tests.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "cluster" in item.path.parts and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group("trio"))
