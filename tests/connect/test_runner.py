"""The thread of a connector, without Spark and without a cluster: what is wanted of it counts, whenever it is said."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.connect.plugins import Plugin
from ottla.connect.rounds.context import ConnectorContext
from ottla.connect.storage import configs, statuses
from ottla.connect.worker import runner as runner_module
from ottla.connect.worker import worker as worker_module
from ottla.connect.worker.runner import Pauses, Runner, Wanted
from ottla.connect.worker.settings import parse_worker
from ottla.connect.worker.worker import Worker

CONFIG = {"name": "made", "connector.class": "DataGenerator", "topic": "t"}
WAIT_S = 30.0


class Rounds:
    """Nothing to do, for ever."""

    task_count = 1

    def begin(self) -> None: ...

    def run(self) -> bool:
        return False

    def close(self) -> None: ...


class Hearing:
    """A worker that writes down what it is told."""

    def __init__(self) -> None:
        self.states: list[str] = []
        self.heard = threading.Condition()
        self.trace: str | None = None
        self.while_settling = lambda: None

    def context(self, name: str, config: Mapping[str, str]) -> ConnectorContext:
        return SimpleNamespace(cancel=lambda: None, hidden=str)  # type: ignore[return-value]

    def set_tasks(self, name: str, plugin: Plugin, count: int) -> None:
        self.while_settling()

    def mend(self) -> None: ...

    def report(self, name: str, state: str, tasks: int | None, trace: str | None, version: str | None) -> None:
        with self.heard:
            self.states.append(state)
            self.trace = trace
            self.heard.notify_all()

    def wait_for(self, state: str) -> bool:
        with self.heard:
            return self.heard.wait_for(lambda: self.states[-1:] == [state], WAIT_S)


@pytest.fixture
def listener(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hearing]:
    monkeypatch.setattr(runner_module, "InheritableThread", threading.Thread)
    monkeypatch.setattr(runner_module, "_rounds", lambda context, connector: Rounds())
    yield Hearing()


@pytest.mark.parametrize(("target", "state"), [(configs.PAUSED, statuses.PAUSED), (configs.STOPPED, statuses.STOPPED)])
def test_what_is_wanted_while_tasks_are_being_told_of_counts_too(listener: Hearing, target: str, state: str) -> None:
    """Telling the leader of them may take half a minute."""
    runner = Runner("made", Wanted(CONFIG, configs.STARTED), listener, Pauses(0.1, 1.0, 0.05))
    listener.while_settling = lambda: runner.want(Wanted(CONFIG, target))
    runner.start()
    try:
        assert listener.wait_for(state), listener.states
    finally:
        runner.stop(WAIT_S)


def test_neither_a_state_nor_its_trace_shows_what_a_reference_stands_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It was valid when the connector was made, and is not any more."""
    monkeypatch.setattr(runner_module, "InheritableThread", threading.Thread)
    (tmp_path / "rate").write_text("s3cret/words\n")
    kind = "org.apache.kafka.common.config.provider.DirectoryConfigProvider"
    settings = parse_worker({"config.providers": "dir", "config.providers.dir.class": kind})
    worker = Worker(settings, SimpleNamespace())  # type: ignore[arg-type]
    worker._context = SimpleNamespace()  # type: ignore[assignment]
    listener = Hearing()
    monkeypatch.setattr(listener, "context", worker.context)
    reference = f"${{dir:{tmp_path}:rate}}"
    runner = Runner("made", Wanted({**CONFIG, "rate": reference}, configs.STARTED), listener, Pauses(0.1, 1.0, 0.05))
    runner.start()
    try:
        assert listener.wait_for(statuses.FAILED)
        assert listener.trace is not None and "s3cret" not in listener.trace
        first = listener.trace.partition("\n")[0]
        assert first == f"Invalid value {reference} for configuration rate: Not a number of type INT"
    finally:
        runner.stop(WAIT_S)


def test_a_connector_that_is_made_again_as_it_was_is_another_one(worker: Worker) -> None:
    """Its state was forgotten with the first, so somebody has to tell it anew."""
    worker._reconcile()
    for key in (b"connector-a", b"target-state-a"):
        worker.configs.apply(key, None)
    worker.configs.apply(*configs.connector_record("a", {**CONFIG, "name": "a"}))
    worker._reconcile()
    assert Starting.started == ["a", "b", "a"] and Starting.stopped == ["a"]


class Spark:
    """Its JVM is gone until it is revived."""

    def __init__(self) -> None:
        self.revived = 0
        self.session: Any = None

    def revive(self) -> None:
        self.revived += 1


class Starting:
    """A runner that can only be started where Spark is there."""

    spark: Spark
    fails_for: str
    started: list[str]
    stopped: list[str]

    def __init__(self, name: str, wanted: Wanted, listener: Any, pauses: Pauses) -> None:
        self.name, self.wanted, self.is_alive, self.busy_since_s = name, wanted, False, None

    def start(self) -> None:
        if self.name == Starting.fails_for and not Starting.spark.revived:
            raise ConnectionRefusedError("the JVM does not answer")
        Starting.started.append(self.name)
        self.is_alive = True

    def stop(self, grace_s: float) -> None:
        Starting.stopped.append(self.name)


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Worker:
    Starting.spark, Starting.fails_for, Starting.started, Starting.stopped = Spark(), "", [], []
    monkeypatch.setattr(worker_module, "Runner", Starting)
    made = Worker(parse_worker({}), Starting.spark)  # type: ignore[arg-type]
    made.board = made._membership = SimpleNamespace()  # type: ignore[assignment]
    for name in ("a", "b"):
        made.configs.configs[name] = {**CONFIG, "name": name}
    made._held = ("a", "b")
    return made


def test_a_connector_that_cannot_be_started_keeps_no_other_from_it_and_is_started_later(worker: Worker) -> None:
    Starting.fails_for = "a"
    worker._reconcile()
    assert Starting.started == ["b"] and Starting.spark.revived
    worker._reconcile()
    assert sorted(Starting.started) == ["a", "b"]


def test_a_thread_that_has_died_is_started_again(worker: Worker) -> None:
    worker._reconcile()
    worker._runners["a"].is_alive = False  # type: ignore[misc]
    worker._reconcile()
    assert Starting.started == ["a", "b", "a"]
    worker._reconcile()
    assert Starting.started == ["a", "b", "a"]
