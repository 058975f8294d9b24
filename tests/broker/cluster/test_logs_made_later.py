"""A broker whose disk is full, or has failed, when it is given a replica: it does without, tells the controller, and
has it when there is room. Found by seeds 83 and 646 of the simulation."""

from __future__ import annotations

import errno
import os
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.broker.cluster.cluster_startup import reconcile
from ottla.broker.cluster.controlling import Controlling
from ottla.broker.cluster.failed_dirs import FailedDirs
from ottla.broker.controller.topic_service import TopicService
from ottla.broker.handlers.cluster import assign_replicas_to_dirs
from ottla.broker.partitions.partition_table import Partitions
from ottla.broker.partitions.partitions_of_image import PartitionsOfImage
from ottla.common.errors import ApiError, ErrorCode
from ottla.common.ids import TopicPartition
from ottla.controller.log_dirs import replicas_offline
from ottla.metadata.image import NO_LEADER, PartitionImage, with_topics, without_topics
from ottla.metastore import stored_image
from ottla.metastore.embedded import EmbeddedStore
from ottla.storage.disk import Disk
from ottla.storage.log_config import LogConfig
from ottla.storage.log_manager import LogManager
from tests.controller.cluster import TOPIC, TOPIC_ID, cluster, partition, rules
from tests.support.manual_clock import ManualClock

HERE = 2
TP = TopicPartition(TOPIC, 0)


class FullDisk(Disk):
    """Has room for a small file, and for no folder of a partition."""

    is_full = False

    def replace_file(self, path: Path, content: bytes, *, sync: bool) -> None:
        if self.is_full and path.parent.name == str(TP):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        super().replace_file(path, content, sync=sync)


class Fetchers:
    """Which partitions are fetched from a leader."""

    def __init__(self) -> None:
        self.following: list[TopicPartition] = []

    def follow(self, replica: Any) -> None:
        self.following.append(TopicPartition(replica.topic, replica.index))

    def stop(self, replica: Any) -> None:
        self.following.remove(TopicPartition(replica.topic, replica.index))


class OneBroker:
    """Broker 2 of a cluster. Its controller decides as a real one, and answers as long as it `hears`."""

    def __init__(self, folder: Path, store: EmbeddedStore) -> None:
        self.disk = FullDisk()
        self.logs = LogManager(
            [folder],
            node_id=HERE,
            cluster_id="cluster",
            clock=ManualClock(),
            default_config=LogConfig(),
            disk=self.disk,
        )
        self.logs.open()
        self.epoch = 10 + HERE
        self.hears = True
        self.asked = 0
        self.fetchers, self.partitions = Fetchers(), Partitions()
        image = cluster()
        configs: Any = SimpleNamespace(log_config=lambda _: LogConfig())
        self.topics = TopicService(
            store=store,
            image=image,
            epoch=None,
            logs=self.logs,
            configs=configs,
            placement=lambda _: None,  # type: ignore[arg-type,return-value]
            node_id=HERE,
            rules=rules(),
            internal_topic=lambda _: None,  # type: ignore[arg-type,return-value]
            is_clustered=True,
        )
        replicas = PartitionsOfImage(
            HERE,
            self.partitions,
            self.logs,
            lambda _: LogConfig(),
            fetchers=self.fetchers,  # type: ignore[arg-type]
            broker_epoch=lambda: self.epoch,
        )
        self.told = 0

        def on_image(old: Any, new: Any) -> None:
            self.told += 1
            replicas.on_image(old, new)
            self.told -= 1  # what raises is told again and again

        self.topics.subscribe(on_image)
        self.failed_dirs = FailedDirs(self)  # type: ignore[arg-type]

    @property
    def node_id(self) -> int:
        return HERE

    @property
    def broker_epoch(self) -> int:
        return self.epoch

    @property
    def image(self) -> Any:
        return self.topics.image

    @property
    def partition(self) -> PartitionImage:
        return self.image.topics[TOPIC].partitions[0]  # type: ignore[no-any-return]

    async def given(self, *replicas: int, **of_partition: Any) -> None:
        """The image of a cluster that has the topic."""
        await self.topics.adopt(cluster(partition(replicas, **of_partition)))
        assert not self.told

    async def ask_controller(self, request: Any) -> Any:
        self.asked += 1
        if not self.hears:
            raise ApiError(ErrorCode.NOT_CONTROLLER, "there is no controller now")

        async def change_topics(plan: Any) -> None:
            _, changed = plan(self.image)
            await self.topics.adopt(with_topics(self.image, changed.values()))

        decides: Any = SimpleNamespace(rules=rules(), _metadata=SimpleNamespace(change_topics=change_topics))
        controlling = SimpleNamespace(replicas_failed=partial(Controlling.replicas_failed, decides))
        controller: Any = SimpleNamespace(is_controller=True, cluster=SimpleNamespace(controlling=controlling))
        steps = assign_replicas_to_dirs.handle(controller, SimpleNamespace(), request)  # type: ignore[arg-type]
        try:
            while True:
                await next(steps)  # type: ignore[misc]
        except StopIteration as done:
            return done.value


@pytest.fixture
def store(tmp_path: Path) -> Iterator[EmbeddedStore]:
    opened = EmbeddedStore(tmp_path / "store.sqlite")
    stored_image.initialise(opened, "cluster")
    yield opened
    opened.close()


@pytest.fixture
async def broker(tmp_path: Path, store: EmbeddedStore) -> AsyncIterator[OneBroker]:
    one = OneBroker(tmp_path / "data", store)
    yield one
    await one.topics.close()
    one.logs.close()


async def test_a_follower_whose_log_could_not_be_made_follows_when_there_is_room(broker: OneBroker) -> None:
    broker.disk.is_full = True
    await broker.given(1, HERE, 3)
    assert broker.fetchers.following == []
    await broker.failed_dirs.check()
    assert (broker.partition.isr, broker.partition.offline) == ((1, 3), (HERE,))
    broker.disk.is_full = False
    await broker.failed_dirs.check()
    assert broker.fetchers.following == [TP]
    assert (broker.partition.isr, broker.partition.offline) == ((1, 3), ())
    assert not broker.logs.unmade
    asked = broker.asked
    await broker.failed_dirs.check()
    assert (broker.asked, broker.told) == (asked, 0)


async def test_a_leader_whose_log_could_not_be_made_leads_when_there_is_room(broker: OneBroker) -> None:
    broker.disk.is_full = True
    await broker.given(HERE)
    assert broker.partitions.of_topic(TOPIC) == []
    await broker.failed_dirs.check()
    assert (broker.partition.leader, broker.partition.offline) == (NO_LEADER, (HERE,))
    broker.disk.is_full = False
    await broker.failed_dirs.check()
    assert (broker.partition.leader, broker.partition.offline) == (HERE, ())
    assert [led.index for led in broker.partitions.of_topic(TOPIC)] == [0]


@pytest.mark.parametrize("replicas", [(HERE, 1, 3), (1, HERE, 3)], ids=["leads", "follows"])
async def test_a_broker_all_of_whose_directories_have_failed_has_its_new_replicas_offline(
    broker: OneBroker, replicas: tuple[int, ...], caplog: pytest.LogCaptureFixture
) -> None:
    """As in Kafka: clients are told so, and somebody else leads."""
    broker.logs._take_offline(broker.logs.dirs[0], "Input/output error")
    await broker.given(*replicas)
    assert broker.partitions.error_for(TOPIC, 0) is ErrorCode.KAFKA_STORAGE_ERROR
    assert broker.partitions.by_id.error_for(TOPIC_ID, 0) is ErrorCode.KAFKA_STORAGE_ERROR
    for _ in range(3):
        await broker.failed_dirs.check()
    assert (broker.partition.leader, broker.partition.isr, broker.partition.offline) == (1, (1, 3), (HERE,))
    assert broker.asked == 1
    assert [record.why for record in caplog.records if record.getMessage() == "a replica could not be made"] == [  # type: ignore[attr-defined]
        f"{TP} could not be made: every log directory is offline"
    ]


async def test_a_replica_that_is_there_after_all_is_offline_no_more(broker: OneBroker) -> None:
    broker.disk.is_full = True
    await broker.given(1, HERE, 3)
    assert broker.partitions.error_for(TOPIC, 0) is ErrorCode.KAFKA_STORAGE_ERROR
    broker.disk.is_full = False
    await broker.failed_dirs.check()
    assert broker.partitions.error_for(TOPIC, 0) is ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_the_controller_is_told_when_it_can_be_reached_again(broker: OneBroker) -> None:
    broker.disk.is_full = True
    await broker.given(1, HERE, 3)
    broker.hears = False
    await broker.failed_dirs.check()
    assert broker.partition.offline == ()
    broker.hears = True
    await broker.failed_dirs.check()
    broker.hears, broker.disk.is_full = False, False
    await broker.failed_dirs.check()
    assert broker.partition.offline == (HERE,)
    broker.hears = True
    await broker.failed_dirs.check()
    assert broker.partition.offline == ()


async def test_a_report_that_has_its_effect_late_is_taken_back(broker: OneBroker) -> None:
    """The broker gave the request up, and has made the log since."""
    broker.disk.is_full = True
    await broker.given(1, HERE, 3)
    broker.hears = False
    await broker.failed_dirs.check()
    broker.disk.is_full = False
    await broker.failed_dirs.check()
    broker.hears = True
    late = replicas_offline(broker.image, HERE, broker.epoch, [(TOPIC_ID, 0)], rules())
    await broker.topics.adopt(with_topics(broker.image, late.values()))
    await broker.failed_dirs.check()
    assert (broker.partition.isr, broker.partition.offline) == ((1, 3), ())


async def test_a_replica_that_was_taken_away_meanwhile_is_not_made(broker: OneBroker) -> None:
    broker.disk.is_full = True
    await broker.given(1, HERE, 3)
    await broker.failed_dirs.check()
    await broker.topics.adopt(without_topics(broker.image, [TOPIC]))
    broker.disk.is_full = False
    await broker.failed_dirs.check()
    assert (dict(broker.logs.logs), broker.logs.unmade) == ({}, {})


async def test_a_broker_starts_with_a_replica_for_which_there_is_no_room(
    broker: OneBroker, store: EmbeddedStore
) -> None:
    """Only a broker that runs can be told to delete something."""
    image = cluster(partition((1, HERE, 3), isr=(1, 3)))
    broker.disk.is_full = True
    reconcile(store, image, broker.logs, lambda _: LogConfig(), HERE)
    assert broker.logs.unmade == {TP: TOPIC_ID}
