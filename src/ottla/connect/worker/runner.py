"""One connector on this worker: a thread that does its rounds, and says how it fares.

A round that fails makes the connector FAILED, with one sentence first and the trace below it, and is done again after a
pause that doubles from `ottla.restart.backoff.ms` on. Where trying again cannot help (a setting that is wrong, a record
that is not tolerated) it waits for a person. It is RUNNING again when a round has succeeded.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from pyspark import InheritableThread

from ottla.connect.api.plugins import Sink, Source
from ottla.connect.plugins import Plugin, UnknownPlugin, find
from ottla.connect.rounds.context import ConnectorContext
from ottla.connect.rounds.failing import Kind, Problem, problem_of
from ottla.connect.rounds.sink import SinkRounds
from ottla.connect.rounds.source import SourceRounds
from ottla.connect.storage import configs, statuses

_LOG = logging.getLogger("ottla.connect.runner")
_FIRST_IDLE_S = 0.05
_CANCELS = 20


class Wanted(NamedTuple):
    """What is to be done; a new one for each change or restart."""

    config: Mapping[str, str]
    target: str
    # Which of the connectors that have had this name.
    incarnation: int = 0


class Listener(Protocol):
    """The worker, which is told in the runner's thread."""

    def context(self, name: str, config: Mapping[str, str]) -> ConnectorContext: ...

    def set_tasks(self, name: str, plugin: Plugin, count: int) -> None: ...

    def mend(self) -> None:
        """Something has failed: look whether it is Spark itself."""

    def report(self, name: str, state: str, tasks: int | None, trace: str | None, version: str | None) -> None: ...


class Pauses(NamedTuple):
    restart_s: float
    restart_s_max: float
    idle_s_max: float


class Runner:
    def __init__(self, name: str, wanted: Wanted, listener: Listener, pauses: Pauses) -> None:
        self.name = name
        self._listener = listener
        self._pauses = pauses
        self._wanted = wanted
        self._changed = threading.Event()
        self._is_stopping = False
        self._context: ConnectorContext | None = None
        self._tasks: int | None = None
        self._version = _version(wanted.config)
        self._state = ""
        self._failures = 0
        # When the round that is going on began.
        self.busy_since_s: float | None = None
        self._stuck: str | None = None
        self._thread = InheritableThread(target=self._run, name=f"connector {name}", daemon=True)

    @property
    def wanted(self) -> Wanted:
        return self._wanted

    @property
    def is_failed(self) -> bool:
        return self._state == statuses.FAILED

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def start(self) -> None:
        """Raises whatever Spark raises whose JVM is gone."""
        self._thread.start()

    def want(self, wanted: Wanted) -> None:
        """Also the same again: a restart."""
        self._failures = 0
        self._wanted = Wanted(*wanted)
        self._changed.set()

    def stop(self, grace_s: float) -> None:
        """The round that is going on may end, for a while; then it is cancelled."""
        self._is_stopping = True
        self._changed.set()
        self._thread.join(grace_s)
        for _ in range(_CANCELS):
            if not self._thread.is_alive():
                return
            self._cancel()
            self._thread.join(1.0)
        # It does not come back from what it waits for. Whoever runs the connector next shuts it out.
        _LOG.error("the connector %s does not stop: its thread is left behind", self.name)

    def say_stuck(self, seconds: float) -> None:
        """It has something to do and does not get on with it: it is not RUNNING, and its round begins anew."""
        if self._stuck is None:
            self._stuck = f"no progress for {seconds:.0f} seconds: the round is given up and done again."
            self._report(statuses.FAILED, self._stuck)
            self._cancel()

    def _cancel(self) -> None:
        try:
            if self._context is not None:
                self._context.cancel()
        except Exception as error:
            _LOG.warning("the job of %s cannot be cancelled: %s", self.name, error)

    # --- the thread

    def _run(self) -> None:
        while not self._is_stopping:
            self._changed.clear()
            wanted = self._wanted
            if wanted.target == configs.STARTED:
                self._work(wanted)
            elif wanted.target == configs.PAUSED:
                self._report(statuses.PAUSED)
                self._changed.wait()
            else:
                self._tasks = None
                self._report(statuses.STOPPED)
                self._changed.wait()

    def _work(self, wanted: Wanted) -> None:
        rounds: SourceRounds | SinkRounds | None = None
        try:
            plugin = find(wanted.config["connector.class"])
            self._version = plugin.version
            self._context = self._listener.context(self.name, wanted.config)
            rounds = _rounds(self._context, plugin.connector)
            rounds.begin()
            while self._goes_on(wanted):
                self._settle(plugin, rounds.task_count)
                self._go_round(wanted, rounds)
        except Exception as error:
            if self._is_stopping:
                return
            self._rest(wanted, problem_of(error))
        finally:
            self.busy_since_s = None
            if rounds is not None:
                self._close(rounds)

    def _goes_on(self, wanted: Wanted) -> bool:
        return self._wanted is wanted and not self._is_stopping

    def _settle(self, plugin: Plugin, tasks: int) -> None:
        """RUNNING, unless it failed last: then a round has to succeed first."""
        if tasks != self._tasks or self._state != statuses.RUNNING:
            if tasks != self._tasks:
                self._listener.set_tasks(self.name, plugin, tasks)
            self._tasks = tasks
            if not self._failures:
                self._report(statuses.RUNNING)

    def _go_round(self, wanted: Wanted, rounds: SourceRounds | SinkRounds) -> None:
        """`wanted`: what the rounds were made for. Something else may be wanted by now."""
        idle_s = _FIRST_IDLE_S
        while self._goes_on(wanted):
            self.busy_since_s = time.monotonic()
            has_more = rounds.run()
            self.busy_since_s = None
            self._stuck = None
            if self._failures or self._state != statuses.RUNNING:
                self._failures = 0
                self._report(statuses.RUNNING)
            if rounds.task_count != self._tasks:
                return
            idle_s = _FIRST_IDLE_S if has_more else min(2 * idle_s, self._pauses.idle_s_max)
            if not has_more:
                self._changed.wait(idle_s)

    def _rest(self, wanted: Wanted, problem: Problem) -> None:
        self._failures += 1
        hidden = str if self._context is None else self._context.hidden
        sentence = self._stuck or hidden(problem.sentence)
        self._stuck = None
        self._report(statuses.FAILED, f"{sentence}\n{hidden(problem.trace)}")
        _LOG.warning("the connector %s fails: %s", self.name, sentence)
        if problem.kind is Kind.LASTING:
            self._changed.wait()
            return
        self._mend()
        pause_s = min(self._pauses.restart_s * 2 ** min(self._failures - 1, 16), self._pauses.restart_s_max)
        self._changed.wait(pause_s)

    def _mend(self) -> None:
        try:
            self._listener.mend()
        except Exception as error:
            _LOG.error("Spark cannot be started again: %s", error)

    def _close(self, rounds: Any) -> None:
        try:
            rounds.close()
        except Exception as error:
            _LOG.warning("the connector %s does not close: %s", self.name, error)

    def _report(self, state: str, trace: str | None = None) -> None:
        if self._is_stopping:
            return  # what it is now is for others to say
        self._state = state
        self._listener.report(self.name, state, self._tasks, trace, self._version)


def _version(config: Mapping[str, str]) -> str | None:
    try:
        return find(config.get("connector.class", "")).version
    except UnknownPlugin:
        return None


def _rounds(context: ConnectorContext, connector: type[Any]) -> SourceRounds | SinkRounds:
    make: dict[bool, Callable[..., Any]] = {True: SourceRounds, False: SinkRounds}
    assert issubclass(connector, Source | Sink)
    rounds: SourceRounds | SinkRounds = make[issubclass(connector, Source)](context, connector)
    return rounds
