"""The fixtures that a project gets by installing Ottla."""

from __future__ import annotations

from importlib.metadata import entry_points

import pytest

from tests.support.kafka_jars import REPO_ROOT


@pytest.fixture(autouse=True)
def _source_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(REPO_ROOT / "src"))


def load_plugin() -> list[str]:
    """Installed, pytest finds the plugin by itself; from a source tree it is named."""
    installed = any(one.name == "ottla" for one in entry_points(group="pytest11"))
    return [] if installed else ["-p", "ottla.testing.pytest_plugin"]


def test_fixtures_are_there_without_an_import(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pathlib
        from confluent_kafka import Producer

        seen = []

        def test_a_broker(ottla_broker, ottla_topic):
            producer = Producer({"bootstrap.servers": ottla_broker.bootstrap_servers})
            producer.produce(ottla_topic, b"hello")
            assert producer.flush(20) == 0
            seen.append((ottla_broker.bootstrap_servers, ottla_topic))
            pathlib.Path("folder").write_text(str(ottla_broker.data_dir))

        def test_the_same_broker_and_another_topic(ottla_broker, ottla_topic):
            assert seen[0][0] == ottla_broker.bootstrap_servers
            assert seen[0][1] != ottla_topic

        def test_names_that_are_no_topic_names_ünïcode(ottla_topic):
            assert ottla_topic.isascii()
        """
    )
    outcome = pytester.runpytest_subprocess(*load_plugin(), "-p", "no:cacheprovider")
    outcome.assert_outcomes(passed=3)
    folder = pytester.path / "folder"
    assert not pytester.path.joinpath(folder.read_text()).exists()


def test_a_session_without_the_fixtures_loads_nothing_of_the_broker(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys

        def test_nothing():
            assert not any(name.startswith(("ottla.broker", "ottla.server")) for name in sys.modules)
        """
    )
    pytester.runpytest_subprocess(*load_plugin(), "-p", "no:cacheprovider").assert_outcomes(passed=1)
