"""The broker: it wires configuration, metadata, logs, groups and handlers together, and runs their chores.

`docs/architecture.md` has the paths of requests through this package.
"""

from __future__ import annotations

import asyncio
import logging
import os
import pwd
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple

from ottla.broker.access.access import Access
from ottla.broker.audit_file import open_audit_file
from ottla.broker.chores.cleaning import Cleaning
from ottla.broker.chores.timers import Handle, Timers
from ottla.broker.cluster.forwarding import Forwarding
from ottla.broker.cluster.peers import Peers
from ottla.broker.configs.config_service import ConfigService
from ottla.broker.context import RequestContext
from ottla.broker.controller import controller_epoch, topic_startup
from ottla.broker.controller.controller_rules import controller_rules
from ottla.broker.controller.producer_ids import ProducerIds, blocks_of_controller
from ottla.broker.controller.topic_service import TopicService
from ottla.broker.coordinators.groups.group_service import GroupService
from ottla.broker.coordinators.internal_topics import internal_topic, internal_topic_of_cluster
from ottla.broker.coordinators.transactions.transaction_service import TransactionService
from ottla.broker.encoded_topics import EncodedTopics
from ottla.broker.log_configs import LOG_DEFAULTS
from ottla.broker.logins.delegation_tokens import DelegationTokens
from ottla.broker.memory import Memory
from ottla.broker.partitions.fetch_sessions import FetchSessions
from ottla.broker.partitions.isr_changes import IsrChanges
from ottla.broker.partitions.partition_table import Partitions
from ottla.broker.partitions.partitions_of_image import PartitionsOfImage
from ottla.broker.partitions.replica_fetcher import ReplicaFetcher, ReplicaFetchers
from ottla.broker.partitions.replica_moves import ReplicaMoves
from ottla.broker.partitions.replica_sessions import ReplicaSessions
from ottla.broker.partitions.replica_throttles import ReplicaThrottles
from ottla.broker.partitions.traffic import Traffic
from ottla.broker.quotas.throttling import Throttling
from ottla.broker.turns import Turns
from ottla.common.clock import Clock, SystemClock
from ottla.common.config import BrokerConfig
from ottla.common.config.listeners import SecurityProtocol
from ottla.common.errors import ApiError, OttlaError
from ottla.common.steps import Steps
from ottla.common.threads import MakeThreads, make_threads
from ottla.controller.placement import Placement, placement_of
from ottla.controller.topic_plan import NewTopic
from ottla.metadata.image import BrokerImage, ClusterImage
from ottla.metastore.embedded import FILE_NAME as METADATA_FILE
from ottla.metastore.embedded import EmbeddedStore
from ottla.metastore.port import Check, MetadataStore, StoreUnavailable
from ottla.protocol.codec import Message
from ottla.protocol.produce_frames import Layouts
from ottla.storage.disk import DISK, Disk
from ottla.storage.log_manager import LogManager

if TYPE_CHECKING:
    from ottla.broker.cluster.cluster import Cluster
    from ottla.broker.observing.request_observer import RequestObserver

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
    peers: Peers
    # None where nobody is asked whether they may.
    access: Access | None = None
    # None while there is no quota for any user or client id.
    throttling: Throttling | None = None
    # None while requests are neither counted nor logged.
    observer: RequestObserver | None = None
    # None on a single node.
    cluster: Cluster | None = None
    _store: MetadataStore

    def __init__(
        self,
        config: BrokerConfig,
        *,
        clock: Clock | None = None,
        make_timers: Callable[[asyncio.AbstractEventLoop, Clock], Timers] = Timers,
        disk: Disk = DISK,
        make_threads: MakeThreads = make_threads,
        open_store: Callable[[BrokerConfig], MetadataStore] | None = None,
        make_peers: Callable[[Broker], Peers] | None = None,
        boot_id: str | None = None,
    ) -> None:
        """`open_store`, `make_peers` and `boot_id` are those of a simulated cluster."""
        self.config = config
        self.is_clustered = bool(config.zookeeper_connect)
        if self.is_clustered:
            _check_way_of_brokers(config)
        self._open_store = open_store or _open_store
        self._make_peers = make_peers or _socket_peers
        self._boot_id = boot_id
        self._disk = disk
        self._make_threads = make_threads
        self.clock = clock or SystemClock()
        self.loop = asyncio.get_running_loop()
        self.timers = make_timers(self.loop, self.clock)
        self.call_later: Callable[[float, Callable[[], object]], Handle] = self.timers.call_later
        self.node_id = config.node_id
        self.rack = config.broker_rack
        self.configs = ConfigService(config)
        self.access = Access(config) if config.authorizer_class_name else None
        # It follows the image, and puts itself into `throttling` while there is a quota.
        self.quotas = Throttling(self)
        self.tokens = DelegationTokens(self)
        self.rules = controller_rules(config)
        self.partitions = Partitions()
        self.traffic = Traffic()
        self.produce_layouts = Layouts()
        self.encoded_topics = EncodedTopics()
        # Consumers' fetches that wait for records (Kafka has them in a purgatory), each with what makes it answer at
        # once. Those of followers are in their sessions.
        self.parked_fetches: dict[int, Callable[[], None]] = {}
        self.fetch_sessions = FetchSessions(config.max_incremental_fetch_session_cache_slots, self.clock)
        self.fetch_bytes_max = config.fetch_max_bytes
        self.throttles = ReplicaThrottles(self)
        self.replica_sessions = ReplicaSessions(self)
        self.replica_fetchers = ReplicaFetchers(partial(ReplicaFetcher, self))
        self.isr_changes = IsrChanges(self)
        # Work that blocks or computes without the interpreter lock: fsync, codecs, deleting files.
        self._threads = make_threads(2, "ottla")
        self.turns = Turns()
        self._in_turns: set[asyncio.Task[None]] = set()
        self.opened_memory = Memory(_OPENED_BYTES_MAX)
        # How a request is answered that came inside another one (`router.py` sets it).
        self.answer_enclosed: Callable[[RequestContext, bytes], Awaitable[bytes]]
        self._forwarding = Forwarding(self)
        self._endpoints: dict[str, tuple[str, int]] = {}
        # How far `open` has come: `logs` is there from the one on, what stands on them from the other.
        self.has_logs = False
        self.has_services = False
        self._is_open = False
        # How to close what is open, the last first; each is told whether the stop is a clean one.
        self._closers: list[Callable[[bool], Awaitable[None]]] = []

    # --- opening and closing

    async def open(self) -> None:
        """Metadata, then logs, then what stands on them. Raises OttlaError with a sentence for the user."""
        self._open_audit_file()
        try:
            if self.is_clustered:
                await self._open_in_cluster()
            else:
                self._open_alone()
        except StoreUnavailable as error:
            advice = "; make room on that file system and start again" if error.is_full else ""
            raise OttlaError(f"{error}{advice}.") from error
        except ApiError as error:
            raise OttlaError(f"{error.message}.") from error
        except OSError as error:
            raise OttlaError(f"cannot read the data directories: {error}; look at the disk first.") from error
        self._is_open = True
        if not self.is_clustered:
            self._register()
        self._start_chores()

    def _open_audit_file(self) -> None:
        config = self.config
        if config.ottla_audit_log_file:
            close_file = open_audit_file(
                config.ottla_audit_log_file, config.ottla_audit_log_max_bytes, config.ottla_audit_log_backups
            )

            async def close(_: bool) -> None:
                close_file()

            self._closers.append(close)

    def _open_alone(self) -> None:
        config, dirs = self.config, self._make_folders()
        store = EmbeddedStore(dirs[0] / METADATA_FILE)
        self._keep_store(store)
        image = topic_startup.read_metadata(
            store,
            dirs,
            node_id=self.node_id,
            adopt=config.ottla_adopt_logs,
            internal_configs=lambda name: self.configs.check_topic(self._internal_topic(name).configs),
            first_users=config.ottla_first_users or "",
        )
        epoch = controller_epoch.elect(store, self.node_id)
        image = replace(image, controller=self.node_id)
        self._open_logs(dirs, image)
        topic_startup.reconcile(store, image, self.logs, self.configs.log_config)
        self._open_services(store, image, epoch)
        store.keep_reserve()
        self.timers.every(lambda: _RESERVE_CHECK_MS, store.keep_reserve, "reserve")

    async def _open_in_cluster(self) -> None:
        """The logs first, then the cluster is joined: whoever asks us finds what we have."""
        # A single node, of which people expect that it is there at once, does not load these.
        from ottla.broker.cluster import cluster_startup, moving_in
        from ottla.broker.cluster.cluster import Cluster

        dirs = self._make_folders()
        boot_id = cluster_startup.boot_id() if self._boot_id is None else self._boot_id
        store = await self.run_in_thread(self._open_store, self.config)
        self._keep_store(store)
        image = await self.run_in_thread(
            cluster_startup.read_metadata, store, dirs, self.config.ottla_first_users or ""
        )
        lossy = cluster_startup.lossy_dirs(dirs, boot_id)
        self._open_logs(dirs, image)
        lossy = {log_dir.path for log_dir in self.logs.dirs if log_dir.path in lossy and log_dir.offline is None}
        for log in self.logs.logs.values():
            if log.dir.parent in lossy:
                # What lies above may be something else than what was committed there.
                log.high_watermark = max(min(log.high_watermark, log.recovery_point), log.log_start_offset)
        cluster_startup.reconcile(store, image, self.logs, self.configs.log_config, self.node_id)
        self.peers = self._make_peers(self)
        self._closers.append(lambda _: self.peers.close())
        self._open_services(store, image, None)
        self.topics.subscribe(self._tell_peers)
        self.cluster = cluster = Cluster(self, store, dict(self._endpoints), may_have_lost_records=bool(lossy))
        self._closers.append(lambda _: cluster.close())
        await cluster.join()
        # Only now: before, the controller did not know what this start of the machine has cost.
        cluster_startup.note_boot(dirs, boot_id, self._disk)
        moving_in.put_away(dirs[0], self._disk)

    def _tell_peers(self, old: ClusterImage, new: ClusterImage) -> None:
        if old.present is not new.present:
            self.peers.on_image()

    def _make_folders(self) -> list[Path]:
        dirs = [Path(path) for path in self.config.data_dirs]
        for folder in dirs:
            _make_folder(folder)
        return dirs

    def _keep_store(self, store: MetadataStore) -> None:
        self._store = store
        self._closers.append(self._close_store)

    def _open_logs(self, dirs: list[Path], image: ClusterImage) -> None:
        self.configs.load(image)
        log_config = self.configs.log_config
        self.logs = LogManager(
            dirs,
            node_id=self.node_id,
            cluster_id=image.cluster_id,
            clock=self.clock,
            default_config=log_config({}),
            config_for=lambda topic: log_config(image.topics[topic].configs if topic in image.topics else {}),
            disk=self._disk,
            make_threads=self._make_threads,
        )
        self.has_logs = True
        self._closers.append(lambda clean: self.run_in_thread(self.logs.close, clean))
        self.logs.open()

    def _open_services(self, store: MetadataStore, image: ClusterImage, epoch: Check | None) -> None:
        config = self.config
        self.topics = TopicService(
            store=store,
            image=image,
            epoch=epoch,
            logs=self.logs,
            configs=self.configs,
            placement=self._placement,
            internal_topic=self._internal_topic,
            rules=self.rules,
            node_id=self.node_id,
            is_clustered=self.is_clustered,
            make_threads=self._make_threads,
            create_elsewhere=self._forwarding.create_topic,
        )
        self.producer_ids = ProducerIds(
            blocks_of_controller(self) if self.is_clustered else self.topics.take_producer_ids
        )
        self.replica_moves = ReplicaMoves(
            self.logs,
            self.partitions,
            self.clock,
            rate=lambda: config.replica_alter_log_dirs_io_max_bytes_per_second,
        )
        self._closers.append(lambda _: self.replica_moves.close())
        self._closers.append(lambda _: self.topics.close())
        self._replicas = PartitionsOfImage(
            self.node_id,
            self.partitions,
            self.logs,
            self.configs.log_config,
            clock=self.clock,
            fetchers=self.replica_fetchers if self.is_clustered else None,
            on_lead=self.replica_sessions.expect,
            traffic=self.traffic,
            broker_epoch=(lambda: self.broker_epoch) if self.is_clustered else None,
        )
        self._closers.append(lambda _: self.isr_changes.close())
        self._closers.append(lambda _: self.replica_fetchers.close())
        if self.access is not None:
            self.access.on_image(image, image)
            self.topics.subscribe(self.access.on_image)
        self.quotas.on_image(image, image)
        self.topics.subscribe(self.quotas.on_image)
        self.tokens.on_image(image, image)
        self.topics.subscribe(self.tokens.on_image)
        self._replicas.on_image(ClusterImage(image.cluster_id), image)
        self.topics.subscribe(self._replicas.on_image)
        self.topics.subscribe(self.isr_changes.on_image)
        self.configs.attach(self.topics)
        config.on_change(self._refresh_log_configs)
        self.groups = GroupService(self)
        self.groups.start()
        self.transactions = TransactionService(self)
        self.transactions.start()
        self.has_services = True

    async def leave(self) -> None:
        """Before a clean stop: others take over what this broker leads."""
        if self.cluster is not None:
            await self.cluster.membership.leave()

    def release_waiting(self) -> None:
        """The broker is about to stop: requests that wait for records, for other replicas or for other members are
        answered now."""
        for finish in list(self.parked_fetches.values()):
            finish()
        self.replica_sessions.finish_waiting()
        for partition in self.partitions:
            partition.release_waiting()
        self.groups.stop()
        self.transactions.stop()

    def _start_chores(self) -> None:
        config, every, first_ms = self.config, self.timers.every, self.config.log_initial_task_delay_ms
        every(lambda: config.log_retention_check_interval_ms, self._retain, "retention", first_ms)
        every(self._checkpoint_interval_ms, self._checkpoint, "checkpoint", first_ms)
        if self.is_clustered:
            self.isr_changes.start()
        every(lambda: min(config.log_flush_scheduler_interval_ms, _FLUSH_CHECK_MS), self._flush, "flush")
        if self.tokens.is_on:
            every(lambda: config.delegation_token_expiry_check_interval_ms, self.tokens.remove_expired, "tokens")
        self.cleaning = Cleaning(self.logs, config, self.clock, self.run_in_thread)
        self._closers.append(lambda _: self.cleaning.close())
        every(lambda: max(1, config.log_cleaner_backoff_ms), self.cleaning.tick, "compaction")

    def _checkpoint_interval_ms(self) -> int:
        """All are written together; in a cluster as often as the high watermarks are."""
        interval_ms = self.config.log_flush_offset_checkpoint_interval_ms
        return (
            min(interval_ms, self.config.replica_high_watermark_checkpoint_interval_ms)
            if self.is_clustered
            else interval_ms
        )

    async def _retain(self) -> None:
        self.logs.producer_id_expiration_ms = self.config.producer_id_expiration_ms
        await self.turns.queue(self.logs.retain_in_steps(self.clock.now_ms()))

    async def _checkpoint(self) -> None:
        await self.turns.queue(self.logs.checkpointing.in_steps())

    async def _flush(self) -> None:
        await self.turns.queue(self.logs.flush_in_steps())
        self.logs.doomed.tick()

    async def close(self, *, clean: bool) -> None:
        """Flush and mark the folders clean, unless the broker is to look crashed."""
        await self.timers.stop()
        while self._closers:
            await self._closers.pop()(clean)
        self._threads.shutdown()

    async def _close_store(self, _: bool) -> None:
        await self.run_in_thread(self._store.close)

    # --- what handlers ask

    @property
    def image(self) -> ClusterImage:
        return self.topics.image

    @property
    def is_controller(self) -> bool:
        return self.topics.epoch is not None

    @property
    def is_store_reached(self) -> bool:
        """Whether this broker can take part in changes now: else it goes on with what it knows."""
        return self.cluster is None or self.cluster.controlling.is_store_reached

    @property
    def broker_epoch(self) -> int:
        """That of the registration that the controller has taken in; -1 while there is none, and on a single node."""
        return -1 if self.cluster is None else self.cluster.membership.epoch

    def ask_controller(self, request: Message) -> Awaitable[Any]:
        """What the controller answers to a request of this broker, also if it is this one. Raises PeerUnavailable, or
        ApiError when there is none: try again later."""
        return self._forwarding.ask(request)

    def forward(self, context: RequestContext, frame: bytes) -> Awaitable[bytes]:
        """What the controller answers to a request of a client."""
        return self._forwarding.forward(context, frame)

    async def catch_up(self) -> None:
        """Afterwards the image has all that was in the store before."""
        if self.cluster is not None:
            await self.cluster.catch_up()

    def endpoint(self, listener: str) -> tuple[str, int]:
        """Where clients of this listener find this broker."""
        return self._endpoints[listener]

    def advertise(self, listener: str, host: str, port: int) -> None:
        """Where clients that come in through this listener find us again. Before the broker is open, in a cluster."""
        self._endpoints[listener] = (host, port)
        if self._is_open and not self.is_clustered:
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
        if self.is_clustered:
            return internal_topic_of_cluster(self.config, name, self.image)
        return internal_topic(self.config, name, broker_count=1)

    def _placement(self, image: ClusterImage) -> Placement:
        config = self.config
        return placement_of(
            image,
            default_partitions=config.num_partitions,
            default_replication_factor=config.default_replication_factor,
            start=image.partition_count,
        )


def _open_store(config: BrokerConfig) -> MetadataStore:
    from ottla.metastore.zookeeper import ZookeeperOptions, open_zookeeper

    options = ZookeeperOptions.of(config)
    assert options is not None, "only for a cluster"
    return open_zookeeper(options)


def _check_way_of_brokers(config: BrokerConfig) -> None:
    """What cannot be used is told before anything is opened."""
    if config.listener_of_brokers.protocol is not SecurityProtocol.PLAINTEXT:
        from ottla.broker.cluster.peer_access import security_of_brokers

        security_of_brokers(config)


def _socket_peers(broker: Broker) -> Peers:
    from ottla.broker.cluster.socket_peers import SocketPeers

    listener = broker.config.listener_of_brokers
    access = None
    if listener.protocol is not SecurityProtocol.PLAINTEXT:
        from ottla.broker.cluster.peer_access import PeerAccess, security_of_brokers  # others do not pay for it

        access = PeerAccess(lambda: security_of_brokers(broker.config), broker.run_in_thread)
    return SocketPeers(
        broker.node_id, lambda node: broker.image.present.get(node), listener.name, broker.call_later, access
    )


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
