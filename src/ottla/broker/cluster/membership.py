"""How a broker becomes a member of the cluster, and remains one.

It registers: a node that goes with its session says where it is, and one that stays counts its registrations; both in
one step. The controller takes a registration in, and from then on the broker leads and follows what the image says. A
broker whose session was lost, or that was fenced because it seemed to be dead, finds that its node is gone and
registers anew, with the next epoch. What it did under the old one does not count any more.

A node of ours that is there already is that of an earlier process if it names our data directory: only one process can
use that, so the other one is gone. Else another broker has our id, and this one must not start.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from ottla.broker.chores.timers import Timers
from ottla.broker.controller.metadata_changes import MetadataChanges
from ottla.common.errors import ApiError, OttlaError
from ottla.common.ids import TopicId
from ottla.common.repeated import Repeated
from ottla.controller.broker_changes import next_registration
from ottla.metadata import nodes
from ottla.metadata.image import BrokerImage, ClusterImage, Registration
from ottla.metastore.port import Create, Delete, MetadataStore, Operation, Set, StoreConflict, StoreUnavailable

log = logging.getLogger("ottla.cluster")

_RETRY_MS = 200
# How often somebody who waits to be taken in hears of it.
_TELL_MS = 10_000
# A stop waits so long for others to lead what this broker led.
LEAVE_MS_MAX = 30_000


class Membership:
    def __init__(
        self,
        metadata: MetadataChanges,
        timers: Timers,
        broker: BrokerImage,
        *,
        incarnation: str,
        directory: str,
        directories: Callable[[], tuple[str, ...]],
        missing: Callable[[], Mapping[TopicId, tuple[int, ...]]],
        ahead: Callable[[], Mapping[TopicId, Mapping[int, int]]],
        may_have_lost_records: bool,
    ) -> None:
        """`directories` are the ids of those that can be used; `missing` are replicas that were in others;
        `ahead` are those that know later leader epochs than the metadata."""
        self._metadata = metadata
        self._timers = timers
        self._broker = broker
        self._incarnation = incarnation
        self._directory = directory
        self._directories = directories
        self._missing = missing
        self._ahead = ahead
        # True once, for the first registration of this process: afterwards it knows what it has.
        self._may_have_lost_records = may_have_lost_records
        self._registering: asyncio.Task[None] | None = None
        self._troubles = Repeated()
        self._is_joining = True
        self._is_stopping = False
        self._has_left = False
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def epoch(self) -> int:
        """That of the registration that counts; -1 while there is none."""
        known = self._metadata.image.brokers.get(self._broker.id)
        return known.epoch if known is not None and known.epoch == self._broker.epoch else -1

    async def join(self) -> None:
        """Register, and wait until the controller has taken us in. Raises OttlaError if another broker has our id."""
        self._metadata.subscribe(self._on_image, first=True)
        await self._register()
        await self._metadata.refresh()
        # Before, the image may have been read without our node.
        self._is_joining = False
        self.look_again()  # we may have been taken in and fenced meanwhile, and nothing else may ever change
        while self.epoch < 0:
            try:
                await asyncio.wait_for(self._changed(), _TELL_MS / 1000)
            except TimeoutError:
                controller = self._metadata.image.controller
                log.warning("waiting for the controller to take this broker in", extra={"controller": controller})

    def _changed(self) -> asyncio.Future[None]:
        """Done at the next change of the image."""
        changed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(changed)
        return changed

    async def leave(self) -> None:
        """Let others lead what we lead, as far as there are others, before we go."""
        self._is_stopping = True
        if self._registering is not None:
            self._registering.cancel()
        stopping = replace(self._broker, is_stopping=True)
        data = nodes.encode_broker(stopping, self._incarnation, self._directory)
        path = nodes.broker_path(self._broker.id)
        try:
            await self._metadata.in_store(lambda store: store.multi([Set(path, data)]))
            async with asyncio.timeout(LEAVE_MS_MAX / 1000):
                while self._leads_what_others_could():
                    await self._changed()
        except (StoreConflict, StoreUnavailable, TimeoutError) as error:
            log.warning("stopping although this broker still leads partitions", extra={"why": repr(error)})
        self._has_left = True

    def _leads_what_others_could(self) -> bool:
        image, own = self._metadata.image, self._broker.id
        if own not in image.brokers:
            return False
        return any(
            partition.leader == own and any(member != own and member in image.brokers for member in partition.isr)
            for topic in image.topics.values()
            for partition in topic.partitions
        )

    def close(self) -> None:
        self._has_left = True
        if self._registering is not None:
            self._registering.cancel()

    def look_again(self) -> None:
        """The session was lost: our node is gone, or will be."""
        self._on_image(self._metadata.image, self._metadata.image)

    def advertise(self, endpoints: dict[str, tuple[str, int]]) -> None:
        """Where we are found changes."""
        self._broker = replace(self._broker, endpoints=endpoints)

    def _on_image(self, _: ClusterImage, new: ClusterImage) -> None:
        waiting, self._waiting = self._waiting, []
        for changed in waiting:
            if not changed.done():
                changed.set_result(None)
        if self._is_joining or self._is_stopping or self._has_left or self._registering is not None:
            return
        own, known = new.present.get(self._broker.id), new.registrations.get(self._broker.id)
        is_fenced = known is not None and known.epoch > self._broker.epoch
        if own is None or own.epoch != self._broker.epoch or is_fenced:
            self._registering = asyncio.get_running_loop().create_task(self._register_again())

    async def _register_again(self) -> None:
        log.warning("this broker is not registered any more, registering anew")
        try:
            while not self._has_left:
                try:
                    await self._register()
                    await self._metadata.refresh()
                    self._troubles.is_over()
                    return
                except (ApiError, OttlaError) as error:
                    if self._troubles.is_news(str(error)):
                        log.error("this broker cannot be registered, will try again", extra={"why": str(error)})
                except Exception as error:
                    if self._troubles.is_news(repr(error)):
                        log.exception("registering failed, will try again")
                await self._timers.sleep(_RETRY_MS)
        finally:
            self._registering = None
            if not self._has_left and not self._is_stopping:
                asyncio.get_running_loop().call_soon(self.look_again)

    async def _register(self) -> None:
        while True:
            try:
                about_us = Registration(
                    epoch=0,
                    is_active=False,
                    may_have_lost_records=self._may_have_lost_records,
                    directories=self._directories(),
                    missing=self._missing(),
                    ahead=self._ahead(),
                    rack=self._broker.rack,
                )
                self._broker = await self._metadata.in_store(partial(self._write, about_us))
                self._may_have_lost_records = False
                log.info("registered", extra={"broker": self._broker.id, "epoch": self._broker.epoch})
                if self.epoch >= 0:
                    # The controller was faster than the store's answer to us: the image has been told already.
                    self._metadata.tell_all_again()
                return
            except StoreConflict:
                pass  # somebody was faster, or our last try went through: look again
            except StoreUnavailable as error:
                if self._troubles.is_news(str(error)):
                    log.warning("cannot register, will try again", extra={"why": str(error)})
                await self._timers.sleep(_RETRY_MS)

    def _write(self, about_us: Registration, store: MetadataStore) -> BrokerImage:
        """On the thread of the store."""
        own, counter = nodes.broker_path(self._broker.id), nodes.broker_epoch_path(self._broker.id)
        store.sync()
        node, last = store.get_many([own, counter])
        operations: list[Operation] = []
        if node is not None:
            fields = ("incarnation", "directory", "epoch", "endpoints")
            incarnation, directory, epoch, endpoints = nodes.decode_named(own, node.data, *fields)
            if incarnation == self._incarnation and last is not None:
                # Our last try, whose answer was lost; or we are still there.
                known = nodes.decode_registration_of(self._broker.id, last.data)
                if known.epoch == epoch and epoch > self._broker.epoch:
                    return replace(self._broker, epoch=epoch)
            elif incarnation != self._incarnation and directory != self._directory:
                raise OttlaError(self._taken(endpoints))
            operations.append(Delete(own, node.version))
        before = None if last is None else nodes.decode_registration_of(self._broker.id, last.data)
        registration = next_registration(before, about_us)
        data = nodes.encode_registration(registration)
        operations.append(Create(counter, data) if last is None else Set(counter, data, last.version))
        broker = replace(self._broker, epoch=registration.epoch)
        operations.append(Create(own, nodes.encode_broker(broker, self._incarnation, self._directory), ephemeral=True))
        store.multi(operations)
        return broker

    def _taken(self, endpoints: dict[str, tuple[str, int]]) -> str:
        where = ", ".join(f"{host}:{port}" for host, port in endpoints.values())
        return (
            f"node.id {self._broker.id} is in use by the broker at {where}; give this one another node.id, or stop "
            "that one."
        )
