"""docs/architecture.md leads through the code: what it names is there, under that name. So are the files that decisions
name."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text()
DECISIONS = "\n".join(path.read_text() for path in sorted((ROOT / "docs" / "decisions").glob("*.md")))


@pytest.fixture(scope="module")
def sources() -> dict[str, str]:
    """Of the package, its tests and tools, by their paths."""
    listed = subprocess.run(
        ["git", "ls-files", "src", "tests", "tools"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return {path: (ROOT / path).read_text() for path in listed.stdout.split() if path.endswith((".py", ".pyx"))}


def named(pattern: str, page: str = PAGE) -> list[str]:
    found = sorted(set(re.findall(pattern, page)))
    assert found
    return found


def test_every_file_and_folder_is_there(sources: dict[str, str]) -> None:
    paths = [f"/{path}" for path in sources]
    named_files = named(r"`([a-z_/]+\.pyx?)`", PAGE + DECISIONS)
    files = [name for name in named_files if not any(path.endswith(f"/{name}") for path in paths)]
    folders = [name for name in named(r"`([a-z_/]+/)`") if not any(f"/{name}" in path for path in paths)]
    assert not files + folders


def test_every_function_and_field_is_there(sources: dict[str, str]) -> None:
    text = "\n".join(sources.values())
    known = {"sendfile", "__consumer_offsets"}  # the system's, and a topic
    names = [name for name in named(r"`(_?[a-z_]+)`") if name not in known]
    assert not [name for name in names if not re.search(rf"\bdef {name}\b|^\s*{name}\b\s*[:=]", text, re.M)]
