"""A worker: it follows the cluster's topics, takes part in the group, and runs the connectors that it is given.

Three things wake the one thread that starts and stops runners: a record of configurations, a new assignment, and time.
Each time it compares what should run here with what does.
"""

from __future__ import annotations

import json
import logging
import secrets
import threading
import time
from collections.abc import Mapping, Sequence
from functools import partial
from urllib.parse import quote

import httpx

from ottla.client.cluster import ClusterClient
from ottla.client.membership import Assigned, Membership, Protocol
from ottla.common.errors import OttlaError
from ottla.connect.plugins import Plugin, UnknownPlugin, find
from ottla.connect.rounds.context import ConnectorContext, WorkerContext
from ottla.connect.storage.compacted import CompactedTopic
from ottla.connect.storage.configs import ConfigState, Pair, Restart, session_key_record, task_records
from ottla.connect.storage.offsets import OffsetState
from ottla.connect.storage.statuses import StatusState
from ottla.connect.worker.assignment import Share, Told, shares
from ottla.connect.worker.board import Board
from ottla.connect.worker.effective import effective
from ottla.connect.worker.errors import NotLeader
from ottla.connect.worker.metrics import WorkerMetrics
from ottla.connect.worker.providers import resolved
from ottla.connect.worker.runner import Pauses, Runner, Wanted
from ottla.connect.worker.settings import WorkerSettings
from ottla.connect.worker.signing import BETWEEN_WORKERS, SIGNATURE, signature
from ottla.connect.worker.spark_session import WorkerSpark
from ottla.connect.worker.writers import Fenced, LeaderWriter, PlainWriter

_LOG = logging.getLogger("ottla.connect.worker")
_LOOK_S = 1.0
_FORWARD_S = 30.0


class Worker:
    def __init__(self, settings: WorkerSettings, spark: WorkerSpark) -> None:
        self.settings = settings
        self._spark = spark
        self.configs, self.statuses, self.offsets = ConfigState(), StatusState(), OffsetState()
        client = settings.client
        self.config_topic = CompactedTopic(client, settings.config_topic, self._apply_config)
        self.status_topic = CompactedTopic(client, settings.status_topic, self.statuses.apply)
        self.offset_topic = CompactedTopic(client, settings.offset_topic, self.offsets.apply)
        self._leader_writer = LeaderWriter(client, self.config_topic, f"connect-cluster-{settings.group}")
        self._status_writer = PlainWriter(client, self.status_topic)
        self.offset_writer = PlainWriter(client, self.offset_topic)
        self.metrics = WorkerMetrics()
        self.cluster_id = ""
        self.url = ""
        self.worker_id = ""
        self.board: Board | None = None
        self._membership: Membership | None = None
        self._context: WorkerContext | None = None
        self._runners: dict[str, Runner] = {}
        # What the group says: None as long as it does not.
        self._share: Share | None = None
        self._is_leader = False
        # Connectors that we were given last, and since when the group cannot be reached.
        self._held: tuple[str, ...] = ()
        self._lost_s: float | None = None
        self._assigned_from: frozenset[str] = frozenset()
        self._joined = threading.Condition()
        self._wake = threading.Event()
        self._is_stopping = False
        self._restarts: list[Restart] = []
        self._restart_guard = threading.Lock()
        # Whoever changes configurations looks at them first: one at a time.
        self.changing = threading.RLock()
        self._thread = threading.Thread(target=self._run, name="ottla-connect-worker", daemon=True)

    # --- life

    def start(self, host: str, port: int) -> None:
        """`host`, `port`: what others reach us by. Returns when everything is read. Raises OttlaError."""
        shown = f"[{host}]" if ":" in host else host
        self.url, self.worker_id = f"{self.settings.rest.scheme}://{shown}:{port}", f"{shown}:{port}"
        settings = self.settings
        with ClusterClient(settings.client.address) as cluster:
            self.cluster_id = str(cluster.metadata([]).cluster_id)
        for topic in (self.config_topic, self.status_topic, self.offset_topic):
            topic.start()
        self.configs.on_restart = self._on_restart
        self.board = Board(self.statuses, self._status_writer.write, self.worker_id)
        self._context = WorkerContext(
            lambda: self._spark.session,
            settings.client,
            settings.group,
            self.offset_topic,
            self.offsets,
            self.offset_writer.write,
            settings.rounds,
            settings.creates_topics,
        )
        self._membership = Membership(
            settings.client.address,
            settings.group,
            Protocol("connect", "ottla", self._tell, self._assign, self._on_assigned),
            settings.timing,
            client_id="ottla-connect",
            what=f"the group of workers '{settings.group}'",
        )
        self._thread.start()
        self._membership.start()

    def stop(self) -> None:
        self._is_stopping = True
        self._wake.set()
        if self._thread.ident is not None:
            self._thread.join()
        for runner in list(self._runners.values()):
            self._stop_runner(runner)
        if self._membership is not None:
            self._membership.stop()
        for topic in (self.config_topic, self.status_topic, self.offset_topic):
            topic.stop()
        for writer in (self._leader_writer, self._status_writer, self.offset_writer):
            writer.close()

    @property
    def is_ready(self) -> bool:
        return self._share is not None

    @property
    def is_leader(self) -> bool:
        return self._is_leader

    # --- the group

    def _tell(self) -> bytes:
        return Told(self.url, tuple(sorted(self._runners))).encode()

    def _assign(self, told: Mapping[str, bytes]) -> dict[str, bytes]:
        """We lead: decide on everything that was ever written."""
        self._leader_writer.resign()
        self._leader_writer.take_over()
        self._make_session_key()
        members = {member: Told.decode(data) for member, data in told.items()}
        names = frozenset(self.configs.configs)
        self._assigned_from = names
        given = shares(members, names)
        return {member: Share(self.url, connectors).encode() for member, connectors in given.items()}

    def _make_session_key(self) -> None:
        if self.configs.session_key is None:
            try:
                self._leader_writer.write([session_key_record(secrets.token_bytes(32), int(time.time() * 1000))])
            except Fenced:
                raise OttlaError("another worker leads the group already.") from None

    def _on_assigned(self, assigned: Assigned | None) -> None:
        with self._joined:
            if assigned is None:
                self._share, self._is_leader = None, False
                self._lost_s = self._lost_s or time.monotonic()
            else:
                self._share, self._is_leader = Share.decode(assigned.assignment), assigned.is_leader
                self._held, self._lost_s = self._share.connectors, None
                assert self.board is not None
                self.board.generation = assigned.generation
            self.metrics.rebalanced(None if assigned is None else assigned.generation)
            if not self._is_leader:
                self._leader_writer.resign()
            self._joined.notify_all()
        self._wake.set()

    def wait_for_leader(self, timeout_s: float) -> str | None:
        """The leader's URL, None if it is us. Raises NotLeader without a URL when nobody leads for so long."""
        deadline_s = time.monotonic() + timeout_s
        with self._joined:
            while self._share is None:
                left_s = deadline_s - time.monotonic()
                if left_s <= 0 or not self._joined.wait(left_s):
                    raise NotLeader(None)
            return None if self._is_leader else self._share.leader_url

    def write_configs(self, records: Sequence[Pair]) -> None:
        """As the leader. Raises NotLeader, OttlaError."""
        if not self._is_leader:
            raise NotLeader(self._share.leader_url if self._share is not None else None)
        try:
            try:
                self._leader_writer.take_over()
                self._leader_writer.write(records)
            except OttlaError:
                # A transactional id that was not used for a week is forgotten; the same records again change nothing.
                self._leader_writer.take_over()
                self._leader_writer.write(records)
        except Fenced:
            with self._joined:
                self._share, self._is_leader = None, False
            assert self._membership is not None
            self._membership.again()
            raise NotLeader(None) from None
        self._wake.set()

    # --- what should run here, and what does

    def _apply_config(self, key: bytes | None, value: bytes | None) -> None:
        self.configs.apply(key, value)
        self._wake.set()

    def _on_restart(self, restart: Restart) -> None:
        with self._restart_guard:
            self._restarts.append(restart)
        self._wake.set()

    def _run(self) -> None:
        while not self._is_stopping:
            self._wake.wait(_LOOK_S)
            self._wake.clear()
            try:
                self._reconcile()
            except Exception:
                _LOG.exception("the worker could not bring its connectors up to date, and tries again")

    def _reconcile(self) -> None:
        share = self._share
        mine = self._mine()
        known = dict(self.configs.configs)
        assert self.board is not None and self._membership is not None
        has_let_go = False
        for name, runner in list(self._runners.items()):
            if name not in known:
                self._stop_runner(runner)
                self.board.forget_own(name)
            elif runner.wanted.incarnation != self.configs.deletions.get(name, 0):
                # Deleted and made anew meanwhile. Whoever deleted it has forgotten its state.
                self._stop_runner(runner)
            elif name not in mine:
                self._stop_runner(runner)
                self.board.let_go(name)
                has_let_go = share is not None
        for name in mine:
            if name in known and not self._is_stopping:
                try:
                    incarnation = self.configs.deletions.get(name, 0)
                    self._bring_up(name, Wanted(known[name], self.configs.target(name), incarnation))
                except Exception:
                    # Others are to run all the same; this one is tried again with the next look.
                    _LOG.exception("the connector %s cannot be started now", name)
                    self._revive()
        self._do_restarts()
        self._look_for_stuck()
        # What was let go may go to somebody else now, and new connectors to anybody.
        if has_let_go or (self._is_leader and self._assigned_from != frozenset(known)):
            self._assigned_from = frozenset(known)
            self._membership.again()

    def _mine(self) -> tuple[str, ...]:
        """A coordinator that restarts is back before it gives our connectors to others; after half a session we let go
        of them. Whoever gets them shuts us out, should we be late."""
        with self._joined:
            lost_s = self._lost_s
            if lost_s is not None and time.monotonic() - lost_s > self.settings.timing.session_timeout_ms / 2000:
                self._held = ()
            return self._held

    def _bring_up(self, name: str, wanted: Wanted) -> None:
        runner = self._runners.get(name)
        if runner is not None and not runner.is_alive:
            _LOG.error("the thread of the connector %s has ended by itself: another one is started", name)
            runner = None
        if runner is None:
            pauses = Pauses(self.settings.restart_s, self.settings.restart_s_max, self.settings.rounds.idle_s_max)
            runner = Runner(name, wanted, self, pauses)
            runner.start()
            self._runners[name] = runner
        elif runner.wanted != wanted:
            runner.want(wanted)

    def _revive(self) -> None:
        """A thread of Spark's cannot be started without its JVM, and who would notice that is none yet."""
        try:
            self._spark.revive()
        except Exception as error:
            _LOG.error("Spark cannot be started again: %s", error)

    def _stop_runner(self, runner: Runner) -> None:
        runner.stop(self.settings.grace_s)
        self._runners.pop(runner.name, None)
        self.metrics.forget(runner.name)

    def _do_restarts(self) -> None:
        with self._restart_guard:
            restarts, self._restarts = self._restarts, []
        for restart in restarts:
            runner = self._runners.get(restart.connector)
            if runner is not None and (runner.is_failed or not restart.only_failed):
                runner.want(runner.wanted)

    def _look_for_stuck(self) -> None:
        now_s = time.monotonic()
        for runner in self._runners.values():
            began_s = runner.busy_since_s
            if began_s is not None and now_s - began_s > self.settings.progress_timeout_s:
                runner.say_stuck(now_s - began_s)

    # --- what runners ask for

    def context(self, name: str, config: Mapping[str, str]) -> ConnectorContext:
        assert self._context is not None

        def on_topics(topics: Sequence[str]) -> None:
            assert self.board is not None
            self.board.uses(name, topics)

        passwords = find(config["connector.class"]).connector.config_def.passwords
        given = resolved(effective(config, self.settings.defaults), self.settings.providers, passwords)
        on_progress = partial(self.metrics.progressed, name)
        return ConnectorContext(self._context, name, given.config, on_topics, given.hidden, on_progress)

    def mend(self) -> None:
        self._spark.revive()

    def set_tasks(self, name: str, plugin: Plugin, count: int) -> None:
        """The leader writes them; that it cannot be reached is no reason not to work."""
        config = self.configs.configs.get(name)
        if config is None or len(self.configs.tasks.get(name, [])) == count:
            return
        try:
            if self._is_leader:
                self.write_tasks(name, plugin.task_class, count)
            elif self._share is not None:
                self._tell_tasks(self._share.leader_url, name, plugin, count)
        except (OttlaError, OSError, httpx.HTTPError, NotLeader) as error:
            _LOG.warning("the tasks of %s cannot be written now: %s", name, error)

    def _tell_tasks(self, leader_url: str, name: str, plugin: Plugin, count: int) -> None:
        path = f"{BETWEEN_WORKERS}tasks/{quote(name, safe='')}"
        body = json.dumps({"class": plugin.task_class, "tasks": count}).encode()
        if self.configs.session_key is None:
            self.config_topic.read_to_end()
        headers = {SIGNATURE: signature(self.configs.session_key or b"", path, body)}
        verify = self.settings.rest.verify()
        told = httpx.put(
            leader_url + path, content=body, headers=headers, timeout=_FORWARD_S, trust_env=False, verify=verify
        )
        told.raise_for_status()

    def write_tasks(self, name: str, task_class: str, count: int) -> None:
        with self.changing:
            config = self.configs.configs.get(name)
            if config is not None:
                self.write_configs(task_records(name, [{**config, "task.class": task_class}] * count))

    def report(self, name: str, state: str, tasks: int | None, trace: str | None, version: str | None) -> None:
        if name in self.configs.configs and self.board is not None:
            self.metrics.reported(name, state, tasks or 0)
            self.board.report(name, state, tasks, trace, version)


def kind_of(config: Mapping[str, str]) -> str:
    """As REST answers say it."""
    try:
        return find(config.get("connector.class", "")).kind
    except UnknownPlugin:
        return "unknown"
