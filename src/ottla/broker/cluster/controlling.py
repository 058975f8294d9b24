"""The controller of the cluster, when it is this broker; and how it comes to be.

Who creates the node of the controller is the controller, until its session ends. In the same step it takes the next
epoch, whose node every later change names: whoever was replaced without knowing it changes nothing. What is to be done
is decided by `ottla.controller` from the image alone, again and again until nothing is left to do, so that a new
controller goes on where the last one stopped.

A broker whose process is gone need not be waited for until its session ends: its connections end at once, and nobody
listens at its address any more. The controller watches for that at all brokers, and all brokers at the controller. It
fences first and elects in the same step; docs/cluster.md has the argument why that is safe even where the verdict is
wrong.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple

from ottla.broker.chores.timers import Timers
from ottla.broker.cluster.peers import Peers, Watching
from ottla.broker.controller.damaged_nodes import put_back
from ottla.broker.controller.metadata_changes import MetadataChanges
from ottla.common.config import BrokerConfig
from ottla.common.errors import ApiError, OttlaError
from ottla.common.repeated import Repeated
from ottla.controller import broker_changes, isr_changes, log_dirs, preferred
from ottla.controller.broker_changes import Changes
from ottla.controller.log_dirs import Replica
from ottla.controller.rules import Rules
from ottla.metadata import image as images
from ottla.metadata import nodes
from ottla.metadata.image import NO_LEADER, ClusterImage, TopicImage
from ottla.metastore.port import (
    Check,
    Create,
    Delete,
    MetadataStore,
    Operation,
    SessionState,
    Set,
    StoreConflict,
    StoreUnavailable,
)
from ottla.protocol.messages import AlterPartitionRequest, AlterPartitionResponse

log = logging.getLogger("ottla.controller")

_RETRY_MS = 200


class _Target(NamedTuple):
    """A registration whose process we watch."""

    broker: int
    epoch: int


class Controlling:
    def __init__(
        self,
        node_id: int,
        store: MetadataStore,
        metadata: MetadataChanges,
        peers: Peers,
        timers: Timers,
        rules: Rules,
        config: BrokerConfig,
    ) -> None:
        self._node_id = node_id
        self._store = store
        self._metadata = metadata
        self._peers = peers
        self._timers = timers
        self.rules = rules
        self._config = config
        self._loop = asyncio.get_running_loop()
        self._watching: dict[_Target, Watching] = {}
        # Found to be gone, and not yet dealt with.
        self._refused: dict[_Target, None] = {}
        self._work: asyncio.Task[None] | None = None
        self._has_work = False
        self._troubles = Repeated()
        self._is_stopped = False
        self.is_store_reached = True
        self._cancel_session: Callable[[], None] = lambda: None

    @property
    def is_active(self) -> bool:
        return self._metadata.epoch is not None

    def start(self) -> None:
        """Call when the image follows the store."""
        self._metadata.on_deposed = self._on_deposed
        self._metadata.damaged.on_found = self._go_on
        # A replica that cannot be placed on this broker must not stop the elections of the cluster.
        self._metadata.subscribe(self._on_image, first=True)
        self._timers.every(
            lambda: self._config.leader_imbalance_check_interval_seconds * 1000, self.rebalance, "preferred leaders"
        )
        self._cancel_session = self._store.on_session(self._tell_of_session)
        self._go_on()

    def stop(self) -> None:
        self._is_stopped = True
        self._cancel_session()
        for watching in self._watching.values():
            watching.cancel()
        self._watching.clear()
        if self._work is not None:
            self._work.cancel()

    # --- what happens around us

    def _tell_of_session(self, state: SessionState) -> None:
        """On a thread of the store."""
        self._loop.call_soon_threadsafe(self._on_session, state)

    def _on_session(self, state: SessionState) -> None:
        self.is_store_reached = state is SessionState.CONNECTED
        if state is SessionState.LOST:
            if self.is_active:
                log.warning("the session is lost: this broker is not the controller any more")
            self._metadata.epoch = None
            self._watch()
        elif state is SessionState.CONNECTED:
            self._go_on()

    def _on_deposed(self) -> None:
        log.warning("another broker is the controller now")
        self._watch()
        self._go_on()

    def _on_image(self, old: ClusterImage, new: ClusterImage) -> None:
        self._watch()
        if new.controller != self._node_id or (
            old.present is not new.present
            or old.registrations is not new.registrations
            or old.topics is not new.topics
            or old.broker_configs is not new.broker_configs
            or old.controller != new.controller
        ):
            self._go_on()

    def _watch(self) -> None:
        """The controller watches all, all watch the controller."""
        image = self._metadata.image
        wanted = set(image.present) if self.is_active else {image.controller}
        targets = {
            _Target(broker, image.present[broker].epoch)
            for broker in sorted(wanted - {self._node_id})
            if broker in image.present
        }
        for target in [target for target in self._watching if target not in targets]:
            self._watching.pop(target).cancel()
            self._refused.pop(target, None)
        for target in sorted(targets):
            if target not in self._watching and not self._is_stopped:
                self._watching[target] = self._peers.watch(*target, on_refused=self._when_refused(target))

    def _when_refused(self, target: _Target) -> Callable[[], None]:
        def on_refused() -> None:
            self._refused[target] = None
            self._go_on()

        return on_refused

    # --- what is to be done

    def _go_on(self) -> None:
        self._has_work = True
        if self._work is None and not self._is_stopped:
            self._work = self._loop.create_task(self._do_work())

    async def _do_work(self) -> None:
        try:
            while self._has_work and not self._is_stopped:
                self._has_work = False
                try:
                    await self._look()
                    self._troubles.is_over()
                except (ApiError, OttlaError, StoreUnavailable, StoreConflict) as error:
                    if self._troubles.is_news(str(error)):
                        log.warning("the controller's work is put off", extra={"why": str(error)})
                    self._has_work = True
                    await self._timers.sleep(_RETRY_MS)
                except Exception as error:
                    if self._troubles.is_news(repr(error)):
                        log.exception("the controller's work failed, will try again")
                    self._has_work = True
                    await self._timers.sleep(_RETRY_MS)
        finally:
            self._work = None

    async def _look(self) -> None:
        image = self._metadata.image
        if not self.is_active:
            gone = next((target for target in self._refused if target.broker == image.controller), None)
            if image.controller == -1 or gone is not None or image.controller == self._node_id:
                await self._campaign(gone)
            if not self.is_active:
                return
        await self._put_back_damaged()
        for target in list(self._refused):
            await self._fence(target)
            self._refused.pop(target, None)
        await self._reconcile()

    # --- being elected

    async def _campaign(self, gone: _Target | None) -> None:
        own = self._metadata.image.present.get(self._node_id)
        if own is None:
            return  # a broker that is not registered cannot be watched by others
        epoch = await self._metadata.in_store(lambda store: self._elect(store, own.epoch, gone))
        if epoch is None:
            await self._metadata.refresh([nodes.CONTROLLER])
            return
        log.info("this broker is the controller now", extra={"broker": self._node_id})
        self._metadata.take_over(epoch)
        await self._metadata.refresh()
        self._watch()

    def _elect(self, store: MetadataStore, broker_epoch: int, gone: _Target | None) -> Check | None:
        """On the thread of the store: the check of our epoch, or None if another one is the controller."""
        store.sync()
        controller, counter = store.get_many([nodes.CONTROLLER, nodes.CONTROLLER_EPOCH])
        operations: list[Operation] = []
        last_epoch = 0
        if counter is not None:
            (last_epoch,) = nodes.decode_named(nodes.CONTROLLER_EPOCH, counter.data, "epoch")
        epoch = last_epoch + 1
        if controller is not None:
            fields = ("broker", "broker_epoch", "epoch")
            *who_is, since_epoch = nodes.decode_named(nodes.CONTROLLER, controller.data, *fields)
            # It may have registered anew since it became the controller: who is gone by its later registration is gone.
            is_dead = gone is not None and gone.broker == who_is[0] and gone.epoch >= who_is[1]
            # One of ours is that of an earlier process, or of a try whose answer was lost.
            if (who_is[0] != self._node_id and not is_dead) or since_epoch != last_epoch:
                return None
            operations.append(Delete(nodes.CONTROLLER, controller.version))
        data = nodes.encode({"epoch": epoch})
        operations.append(
            Create(nodes.CONTROLLER_EPOCH, data)
            if counter is None
            else Set(nodes.CONTROLLER_EPOCH, data, counter.version)
        )
        who = {"broker": self._node_id, "epoch": epoch, "broker_epoch": broker_epoch}
        operations.append(Create(nodes.CONTROLLER, nodes.encode(who), ephemeral=True))
        try:
            versions = store.multi(operations)
        except StoreConflict:
            return None  # another one was faster
        return Check(nodes.CONTROLLER_EPOCH, versions[-2])

    # --- changes

    async def _reconcile(self) -> None:
        async def change() -> None:
            image = self._metadata.image
            stopping = next(
                (broker.id for broker in image.brokers.values() if self._is_new_stop(image, broker.id)), None
            )
            if stopping is not None:
                log.info("moving leaders away from a broker that stops", extra={"broker": stopping})
                await self._write(broker_changes.controlled_shutdown(image, stopping, self.rules))
                self._has_work = True
            else:
                await self._write(broker_changes.reconcile(image, self.rules))

        await self._metadata.change(change())

    @staticmethod
    def _is_new_stop(image: ClusterImage, broker: int) -> bool:
        return image.brokers[broker].is_stopping and not image.registrations[broker].is_stopping

    async def _put_back_damaged(self) -> None:
        """Nodes that only the controller writes, and somebody else has written to."""
        if not self._metadata.damaged.known(self._metadata.image):
            return

        async def change() -> None:
            image = self._metadata.image
            paths = self._metadata.damaged.known(image)
            writes = await self._metadata.in_store(lambda store: put_back(store, image, paths))
            for write in writes:
                log.warning("a damaged node is put back as it was", extra={"node": write.path})
            await self._metadata.commit_and_adopt(writes)

        await self._metadata.change(change())
        await self._metadata.refresh(self._metadata.damaged.known(self._metadata.image))

    async def _fence(self, target: _Target) -> None:
        async def change() -> None:
            image = self._metadata.image
            known = image.present.get(target.broker)
            if known is None or known.epoch != target.epoch:
                return
            log.warning("a broker is gone: nobody listens at its address", extra={"broker": target.broker})
            await self._write(broker_changes.broker_gone(image, target.broker, self.rules), gone=target.broker)

        await self._metadata.change(change())

    async def _write(self, changes: Changes, gone: int | None = None) -> None:
        """Registrations that are fenced come first, those that are taken in last: an election is safe only behind the
        fence."""
        brokers = sorted(changes.registrations.keys() | ({gone} if gone is not None else set()))
        if not brokers and not changes.topics:
            return
        fences, admissions = await self._metadata.in_store(
            lambda store: self._registration_writes(store, changes, brokers, gone)
        )
        topics = [Set(nodes.topic_path(name), nodes.encode_topic(topic)) for name, topic in changes.topics.items()]
        await self._metadata.commit_and_adopt([*fences, *topics, *admissions])
        for broker, registration in changes.registrations.items():
            what = "broker taken in" if registration.is_active else "broker fenced"
            log.info(what, extra={"broker": broker, "epoch": registration.epoch})
        if changes.topics:
            log.info("leaders and replicas changed", extra={"topics": len(changes.topics)})
            self._tell_of_emptied(changes)

    @staticmethod
    def _tell_of_emptied(changes: Changes) -> None:
        """Only a person can help where the last replica has lost its disk."""
        waiting = [
            f"{name}-{index}"
            for name, topic in changes.topics.items()
            for index, partition in enumerate(topic.partitions)
            if partition.leader == NO_LEADER and partition.last_known_leader in partition.emptied
        ]
        if waiting:
            log.error(
                "partitions have no leader: the last broker that had their records came back without the log directory "
                "that held them. Bring that directory back, or give the records up: ottla partition elect "
                "TOPIC:PARTITION --unclean",
                extra={"partitions": len(waiting), "first": waiting[0]},
            )

    def _registration_writes(
        self, store: MetadataStore, changes: Changes, brokers: list[int], gone: int | None
    ) -> tuple[list[Operation], list[Operation]]:
        """On the thread of the store. Each is conditional on what was decided about: not on a later registration."""
        found = store.get_many([nodes.broker_path(broker) for broker in brokers])
        counters = store.get_many([nodes.broker_epoch_path(broker) for broker in brokers])
        image = self._metadata.image
        fences: list[Operation] = []
        admissions: list[Operation] = []
        for broker, node, counter in zip(brokers, found, counters, strict=True):
            known = image.registrations.get(broker)
            if counter is None or known is None or nodes.decode_registration_of(broker, counter.data) != known:
                raise StoreUnavailable(f"the registration of broker {broker} has changed meanwhile")
            registration = changes.registrations.get(broker, known)
            write = Set(nodes.broker_epoch_path(broker), nodes.encode_registration(registration), counter.version)
            if registration.is_active:
                if node is None:
                    raise StoreUnavailable(f"broker {broker} has gone meanwhile")
                admissions += [Check(nodes.broker_path(broker), node.version), write]
            else:
                if node is not None and broker == gone:
                    fences.append(Delete(nodes.broker_path(broker), node.version))
                fences.append(write)
        return fences, admissions

    async def rebalance(self) -> None:
        """Now and then: partitions go back to their first replica, once too many of a broker's are led by others."""
        if not self.is_active or not self._config.auto_leader_rebalance_enable:
            return

        def plan(image: ClusterImage) -> tuple[None, Mapping[str, TopicImage]]:
            return None, preferred.rebalance(image, self.rules, imbalance_percentage=0)

        try:
            await self._metadata.change_topics(plan)
        except ApiError as error:  # the next time, by whoever is the controller then
            log.warning("leaders are not put right now", extra={"why": str(error)})

    def replicas_failed(
        self, broker: int, broker_epoch: int, lost: Sequence[Replica], found: Sequence[Replica]
    ) -> Awaitable[None]:
        """Replicas of a broker cannot be used, and others can be used after all."""

        def plan(image: ClusterImage) -> tuple[None, Mapping[str, TopicImage]]:
            offline = log_dirs.replicas_offline(image, broker, broker_epoch, lost, self.rules)
            then = images.with_topics(image, offline.values())
            return None, offline | log_dirs.replicas_online(then, broker, broker_epoch, found, self.rules)

        return self._metadata.change_topics(plan)

    def alter_partition(self, request: AlterPartitionRequest) -> Awaitable[AlterPartitionResponse]:
        return self._metadata.change_topics(lambda image: isr_changes.alter_partition(image, request, self.rules))
