"""What every test session shares: which tests are quick, long groups begin first, and the end says what was not run.

Nobody marks a test as quick. It is when it stays in its own process: neither its module nor that of a fixture it uses
has anything at hand that starts another one, and it is not marked as long or as in need of a JVM. Crashes at every
write, other people's clients, pages and what a cluster or Spark is needed for, which take their time in one process
too, are not.
"""

from __future__ import annotations

import gc
import os
from collections import Counter
from collections.abc import Generator

# Its plugin would import it when a run ends, deep in other calls, where the parser of Python 3.11 loses count of its
# own depth ("AST constructor recursion depth mismatch") and the run would fail after its last test.
import hypothesis
import pytest

from tests.support.kafka_jars import QUICK_JVM
from tests.support.kafka_peer import KafkaPeer

pytest_plugins = [
    "pytester",
    "tests.support.brokers",
    "tests.support.broker_fixtures",
    "tests.support.databases",
    "tests.support.descriptors",
    "tests.support.zookeeper",
]

# How long a busy machine takes to make or to run an example is no finding.
hypothesis.settings.register_profile(
    "ottla", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow], print_blob=True
)
hypothesis.settings.load_profile("ottla")

# Of every Spark and every Kafka that a test starts.
os.environ.setdefault("SPARK_SUBMIT_OPTS", " ".join(QUICK_JVM))
KafkaPeer.options = QUICK_JVM

# Groups that one worker runs from end to end, longest first: begun late, they would go on when all others are done.
STARTERS = {"subprocess", "multiprocessing", "OttlaProcess", "KafkaPeer", "Cli", "Zookeeper", "Postgres", "Mariadb"}
NEVER_QUICK = ("slow", "spark", "jvm", "foreign")
NEVER_QUICK_FOLDERS = ("cluster", "connect/databases", "console", "crash", "interop", "loop", "spark")
LONG_GROUPS = ("spark processes", "spark", "foreign", "crash", "python-clients", "kafka-peer")


# Called after those of the folders below, which add markers, and before pytest selects by them.
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    def place(item: pytest.Item) -> int:
        mark = item.get_closest_marker("xdist_group")
        group = mark.args[0] if mark is not None else None
        return LONG_GROUPS.index(group) if group in LONG_GROUPS else len(LONG_GROUPS)

    items.sort(key=place)
    for item in items:
        if is_quick(item):
            item.add_marker(pytest.mark.quick)


def is_quick(item: pytest.Item) -> bool:
    if not isinstance(item, pytest.Function) or any(item.get_closest_marker(name) for name in NEVER_QUICK):
        return False
    if any(f"/tests/{folder}/" in item.path.as_posix() for folder in NEVER_QUICK_FOLDERS):
        return False
    fixtures = [one for several in item._fixtureinfo.name2fixturedefs.values() for one in several]
    at_hand = [vars(item.module), *(getattr(one.func, "__globals__", {}) for one in fixtures)]
    return not any(STARTERS & names.keys() for names in at_hand)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A report parses the source of what failed. If garbage is collected meanwhile, the parser of Python 3.11 loses
    count (gh-106905), and instead of the failure there would be an internal error that ends the session."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def _reason(report: pytest.TestReport) -> str:
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return text.removeprefix("Skipped: ").strip()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line for each reason, however many tests have it."""
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = Counter(_reason(report) for report in skipped)
    lines = [f"{count:6,} skipped: {reason}" for reason, count in reasons.most_common()]
    chosen = terminalreporter.config.option.markexpr
    if chosen:
        lines.append(f"   all that are not `{chosen}` (markers in pyproject.toml; `make test-slow` runs the long ones)")
    terminalreporter.write_line("")
    terminalreporter.write_line("not run:" if lines else "not run: nothing, every test was run")
    for line in lines:
        terminalreporter.write_line(line)
