"""What every test session shares: long groups begin first, and the last line says what was not run, and why."""

from __future__ import annotations

from collections import Counter

# Its plugin would import it when a run ends, deep in other calls, where the parser of Python 3.11 loses count of its
# own depth ("AST constructor recursion depth mismatch") and the run would fail after its last test.
import hypothesis  # noqa: F401
import pytest

pytest_plugins = ["pytester", "tests.support.brokers", "tests.support.broker_fixtures"]

# Groups that one worker runs from end to end, longest first: begun late, they would go on when all others are done.
LONG_GROUPS = ("spark processes", "spark", "foreign", "crash", "python-clients", "kafka-peer")


@pytest.hookimpl(trylast=True)  # other hooks add markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    def place(item: pytest.Item) -> int:
        mark = item.get_closest_marker("xdist_group")
        group = mark.args[0] if mark is not None else None
        return LONG_GROUPS.index(group) if group in LONG_GROUPS else len(LONG_GROUPS)

    items.sort(key=place)


def _reason(report: pytest.TestReport) -> str:
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return text.removeprefix("Skipped: ").strip()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = Counter(_reason(report) for report in skipped)
    parts = [f"{count} skipped ({reason})" for reason, count in sorted(reasons.items())]
    chosen = terminalreporter.config.option.markexpr
    if chosen:
        parts.append(f"tests that are not `{chosen}` (markers in pyproject.toml; `make test-slow` runs the long ones)")
    terminalreporter.write_line("")
    terminalreporter.write_line("not run: " + ("; ".join(parts) if parts else "nothing, every test was run"))
