"""What a broker of a cluster has beside what a single node has, put together."""

from __future__ import annotations

import logging
import uuid
from typing import TYPE_CHECKING

from ottla.broker.cluster.cluster_startup import directory_ids
from ottla.broker.cluster.controlling import Controlling
from ottla.broker.cluster.emptied_replicas import EmptiedReplicas
from ottla.broker.cluster.failed_dirs import CHECK_MS, FailedDirs
from ottla.broker.cluster.membership import Membership
from ottla.broker.cluster.store_watch import StoreWatch
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import TopicId
from ottla.controller.epochs_ahead import epochs_ahead
from ottla.metadata.image import BrokerImage
from ottla.metastore.port import MetadataStore, StoreUnavailable

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

logger = logging.getLogger("ottla.cluster")


class Cluster:
    def __init__(
        self,
        broker: Broker,
        store: MetadataStore,
        endpoints: dict[str, tuple[str, int]],
        *,
        may_have_lost_records: bool,
    ) -> None:
        self._metadata = broker.topics
        self._logs = broker.logs
        own = BrokerImage(broker.node_id, broker.rack, endpoints)
        self._emptied = EmptiedReplicas(broker)
        self.watch = StoreWatch(store, broker.topics, broker.timers)
        self.membership = Membership(
            broker.topics,
            broker.timers,
            own,
            incarnation=str(uuid.uuid4()),
            directory=broker.logs.dirs[0].directory_id.hex(),
            directories=lambda: tuple(directory_ids(broker.logs)),
            missing=self._emptied.missing,
            ahead=self._ahead,
            may_have_lost_records=may_have_lost_records,
        )
        self.controlling = Controlling(
            broker.node_id, store, broker.topics, broker.peers, broker.timers, broker.rules, broker.config
        )
        self._failed_dirs = FailedDirs(broker)
        self._timers = broker.timers

    def _ahead(self) -> dict[TopicId, dict[int, int]]:
        latest = ((tp, log.leader_epochs.latest) for tp, log in self._logs.logs.items())
        ahead = epochs_ahead(self._metadata.image, latest)
        if ahead:
            logger.error(
                "the metadata is older than the logs of this broker: was ZooKeeper restored from a backup? The leader "
                "epochs are raised above those of the logs",
                extra={"partitions": sum(map(len, ahead.values()))},
            )
        return ahead

    async def join(self) -> None:
        self.controlling.start()
        self._metadata.subscribe(self._emptied.on_image, first=True)
        await self.membership.join()
        self._timers.every(lambda: CHECK_MS, self._failed_dirs.check, "failed log directories")

    async def catch_up(self) -> None:
        """Afterwards the image has all that was in the store before. Raises ApiError."""
        try:
            await self._metadata.in_store(lambda store: store.sync())
        except StoreUnavailable as error:
            raise ApiError(ErrorCode.REQUEST_TIMED_OUT, str(error)) from error
        await self.watch.settled()

    async def close(self) -> None:
        self.controlling.stop()
        self.membership.close()
        self.watch.close()
