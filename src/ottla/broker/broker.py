"""The broker: it wires configuration, metadata, logs, groups and handlers together, and runs their chores.

`docs/architecture.md` has the paths of requests through this package.
"""

from __future__ import annotations

import asyncio
import logging
import os
import pwd
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TypeVar, TypeVarTuple

from ottla.broker.chores.cleaning import Cleaning
from ottla.broker.chores.timers import Handle, Timers
from ottla.broker.configs.config_service import ConfigService
from ottla.broker.configs.log_configs import LOG_DEFAULTS, remembering
from ottla.broker.controller import controller_epoch, topic_startup
from ottla.broker.controller.producer_ids import ProducerIds
from ottla.broker.controller.topic_plan import NewTopic, Placement
from ottla.broker.controller.topic_service import TopicService
from ottla.broker.coordinators.group_service import GroupService
from ottla.broker.coordinators.internal_topics import internal_topic
from ottla.broker.coordinators.transaction_service import TransactionService
from ottla.broker.encoded_topics import EncodedTopics
from ottla.broker.memory import Memory
from ottla.broker.partitions.fetch_sessions import FetchSessions
from ottla.broker.partitions.partition_table import Partitions
from ottla.broker.partitions.partitions_of_image import PartitionsOfImage
from ottla.broker.partitions.replica_moves import ReplicaMoves
from ottla.broker.turns import Turns
from ottla.common.clock import Clock, SystemClock
from ottla.common.config import BrokerConfig
from ottla.common.errors import ApiError, OttlaError
from ottla.common.steps import Steps
from ottla.metadata.image import BrokerImage, ClusterImage
from ottla.metastore.embedded import FILE_NAME as METADATA_FILE
from ottla.metastore.embedded import EmbeddedStore
from ottla.metastore.port import StoreUnavailable
from ottla.protocol.produce_frames import Layouts
from ottla.storage.disk import DISK, Disk
from ottla.storage.log_manager import LogManager

log = logging.getLogger("ottla.broker")

# Kafka's own default for the scheduler is never, which leaves a topic's flush.ms without effect.
_FLUSH_CHECK_MS = 1_000
_RESERVE_CHECK_MS = 10_000

# What all batches that are open at a time may take, so that any number of them is a question of time alone. One batch
# may take half of it (`Rules.decompressed_bytes_max`).
_OPENED_BYTES_MAX = 256 * 1024 * 1024

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Broker:
    """Make it and `open()` it on a running event loop; `server.Server` gives it listeners."""

    topics: TopicService
    logs: LogManager
    cleaning: Cleaning
    producer_ids: ProducerIds
    replica_moves: ReplicaMoves
    groups: GroupService
    transactions: TransactionService
    _store: EmbeddedStore

    def __init__(
        self,
        config: BrokerConfig,
        *,
        clock: Clock | None = None,
        make_timers: Callable[[asyncio.AbstractEventLoop, Clock], Timers] = Timers,
        disk: Disk = DISK,
    ) -> None:
        self.config = config
        self._disk = disk
        self.clock = clock or SystemClock()
        self.loop = asyncio.get_running_loop()
        self.timers = make_timers(self.loop, self.clock)
        self.call_later: Callable[[float, Callable[[], object]], Handle] = self.timers.call_later
        self.node_id = config.node_id
        self.rack = config.broker_rack
        self.configs = ConfigService(config)
        self.partitions = Partitions()
        self.produce_layouts = Layouts()
        self.encoded_topics = EncodedTopics()
        # Fetches that wait for records, each with what makes it answer at once.
        self.parked_fetches: dict[int, Callable[[], None]] = {}
        self.fetch_sessions = FetchSessions(config.max_incremental_fetch_session_cache_slots, self.clock)
        self.fetch_bytes_max = config.fetch_max_bytes
        # Work that blocks or computes without the interpreter lock: fsync, codecs, deleting files.
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="ottla")
        self.turns = Turns()
        self._in_turns: set[asyncio.Task[None]] = set()
        self.opened_memory = Memory(_OPENED_BYTES_MAX)
        self._endpoints: dict[str, tuple[str, int]] = {}
        self._is_open = False
        # How to close what is open, the last first; each is told whether the stop is a clean one.
        self._closers: list[Callable[[bool], Awaitable[None]]] = []

    # --- opening and closing

    async def open(self) -> None:
        """Metadata, then logs, then what stands on them. Raises OttlaError with a sentence for the user."""
        try:
            self._open()
        except StoreUnavailable as error:
            advice = "; make room on that file system and start again" if error.is_full else ""
            raise OttlaError(f"{error}{advice}.") from error
        except ApiError as error:
            raise OttlaError(f"{error.message}.") from error
        except OSError as error:
            raise OttlaError(f"cannot read the data directories: {error}; look at the disk first.") from error
        self._is_open = True
        self._register()
        self._start_chores()

    def _open(self) -> None:
        config = self.config
        dirs = [Path(path) for path in config.data_dirs]
        for folder in dirs:
            _make_folder(folder)
        store = self._store = EmbeddedStore(dirs[0] / METADATA_FILE)
        self._closers.append(self._close_store)
        image = topic_startup.read_metadata(
            store,
            dirs,
            node_id=self.node_id,
            adopt=config.ottla_adopt_logs,
            internal_configs=lambda name: self.configs.check_topic(self._internal_topic(name).configs),
        )
        epoch = controller_epoch.elect(store, self.node_id)
        image = replace(image, controller=self.node_id)
        self.configs.load(image)
        log_config = remembering(self.configs.log_config)
        self.logs = LogManager(
            dirs,
            node_id=self.node_id,
            cluster_id=image.cluster_id,
            clock=self.clock,
            default_config=log_config({}),
            config_for=lambda topic: log_config(image.topics[topic].configs if topic in image.topics else {}),
            disk=self._disk,
        )
        self._closers.append(lambda clean: self.run_in_thread(self.logs.close, clean))
        self.logs.open()
        topic_startup.reconcile(store, image, self.logs, log_config)
        self.topics = TopicService(
            store=store,
            image=image,
            epoch=epoch,
            logs=self.logs,
            configs=self.configs,
            placement=Placement([self.node_id], config.num_partitions, config.default_replication_factor),
            internal_topic=self._internal_topic,
        )
        self.producer_ids = ProducerIds(self.topics.take_producer_ids)
        self.replica_moves = ReplicaMoves(self.logs, self.partitions, self.clock)
        self._closers.append(lambda _: self.replica_moves.close())
        self._closers.append(lambda _: self.topics.close())
        self._replicas = PartitionsOfImage(self.node_id, self.partitions, self.logs, self.configs.log_config)
        self._replicas.on_image(ClusterImage(image.cluster_id), image)
        self.topics.subscribe(self._replicas.on_image)
        self.configs.attach(self.topics)
        config.on_change(self._refresh_log_configs)
        self.groups = GroupService(self)
        self.groups.start()
        self.transactions = TransactionService(self)
        self.transactions.start()

    def release_waiting(self) -> None:
        """The broker is about to stop: requests that wait for records or for other members are answered now."""
        for finish in list(self.parked_fetches.values()):
            finish()
        self.groups.stop()
        self.transactions.stop()

    def _start_chores(self) -> None:
        config, every, first_ms = self.config, self.timers.every, self.config.log_initial_task_delay_ms
        self._store.keep_reserve()
        every(lambda: _RESERVE_CHECK_MS, self._store.keep_reserve, "reserve")
        every(lambda: config.log_retention_check_interval_ms, self._retain, "retention", first_ms)
        every(lambda: config.log_flush_offset_checkpoint_interval_ms, self._checkpoint, "checkpoint", first_ms)
        every(lambda: min(config.log_flush_scheduler_interval_ms, _FLUSH_CHECK_MS), self._flush, "flush")
        self.cleaning = Cleaning(self.logs, config, self.clock, self.run_in_thread)
        self._closers.append(lambda _: self.cleaning.close())
        every(lambda: max(1, config.log_cleaner_backoff_ms), self.cleaning.tick, "compaction")

    async def _retain(self) -> None:
        self.logs.producer_id_expiration_ms = self.config.producer_id_expiration_ms
        await self.turns.queue(self.logs.retain_in_steps(self.clock.now_ms()))

    async def _checkpoint(self) -> None:
        await self.turns.queue(self.logs.checkpoint_in_steps())

    async def _flush(self) -> None:
        await self.turns.queue(self.logs.flush_in_steps())
        self.logs.tick_deletions()

    async def close(self, *, clean: bool) -> None:
        """Flush and mark the folders clean, unless the broker is to look crashed."""
        await self.timers.stop()
        while self._closers:
            await self._closers.pop()(clean)
        self._threads.shutdown()

    async def _close_store(self, _: bool) -> None:
        self._store.close()

    # --- what handlers ask

    @property
    def image(self) -> ClusterImage:
        return self.topics.image

    def advertise(self, listener: str, host: str, port: int) -> None:
        """Where clients that come in through this listener find us again."""
        self._endpoints[listener] = (host, port)
        if self._is_open:
            self._register()

    def _register(self) -> None:
        self.topics.register(BrokerImage(self.node_id, self.rack, dict(self._endpoints)))

    def in_turns(self, work: Steps[None]) -> None:
        """Begin it; it tells nobody how it ends."""
        task = self.loop.create_task(self.turns.queue(work))
        self._in_turns.add(task)
        task.add_done_callback(self._in_turns.discard)

    def run_in_thread(self, work: Callable[[*Ts], T], *arguments: *Ts) -> Awaitable[T]:
        return self.loop.run_in_executor(self._threads, work, *arguments)

    # --- configuration of topics

    def _refresh_log_configs(self, changed: frozenset[str]) -> None:
        """Topics take what they do not set themselves from the broker."""
        if changed & LOG_DEFAULTS:
            self._replicas.refresh_all_configs(self.image)

    def _internal_topic(self, name: str) -> NewTopic:
        return internal_topic(self.config, name, broker_count=1)


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OttlaError(f"cannot use {path} for data: {error.strerror}; choose another with --data-dir") from None
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK, effective_ids=True):
        raise OttlaError(
            f"cannot write to the data directory {path}: make it writable for {_user()}, "
            "or choose another with --data-dir"
        )


def _user() -> str:
    try:
        return f"the user {pwd.getpwuid(os.geteuid()).pw_name}"
    except KeyError:
        return f"the user id {os.geteuid()}"
