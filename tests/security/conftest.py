"""A secured broker in this process, and the settings with which each client library gets in."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.certificates import Certificates


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    folder = tmp_path / "certificates"
    folder.mkdir()
    return Certificates(folder)
