"""Every example of docs/testing.md is run, as a file of its own under pytest."""

from __future__ import annotations

import pytest

from tests.support.kafka_jars import REPO_ROOT
from tests.support.markdown import blocks

EXAMPLES = [block for block in blocks(REPO_ROOT / "docs" / "testing.md") if block.language == "python"]
WHOLE = """
def test_it_runs():
    pass
"""


def test_every_example_passes(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(REPO_ROOT / "src"))
    tests = 0
    for example in EXAMPLES:
        has_tests = "def test_" in example.text
        # what is no test runs when it is imported
        name = f"test_line_{example.line}.py"
        pytester.path.joinpath(name).write_text(example.text if has_tests else example.text + WHOLE)
        tests += example.text.count("def test_") if has_tests else 1
    outcome = pytester.runpytest_subprocess("-p", "no:cacheprovider", "--import-mode=importlib", "-q")
    outcome.assert_outcomes(passed=tests)
    assert tests >= len(EXAMPLES) > 5
