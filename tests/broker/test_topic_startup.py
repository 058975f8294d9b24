"""A broker that starts: what the metadata says and what the folders hold are brought together, and nothing is lost."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ottla.broker.broker import Broker
from ottla.broker.controller.topic_startup import ADOPTED_PRODUCER_ID_FLOOR
from ottla.common.config import BrokerConfig
from ottla.common.errors import OttlaError
from ottla.common.ids import TopicPartition
from ottla.common.random_ids import random_topic_id
from ottla.controller.topic_plan import NewTopic
from ottla.metadata import nodes
from ottla.metastore.embedded import FILE_NAME, EmbeddedStore
from ottla.metastore.port import Create, Delete
from ottla.storage.log_dirs import checkpoints
from tests.storage.batches import append


@asynccontextmanager
async def running(folder: Path, *more: Path, clean: bool = True, **properties: str) -> AsyncIterator[Broker]:
    dirs = ",".join(str(one) for one in (folder, *more))
    config = BrokerConfig.load({"log.dirs": dirs} | {name.replace("_", "."): text for name, text in properties.items()})
    broker = Broker(config)
    try:
        await broker.open()
        yield broker
    finally:
        await broker.close(clean=clean)


def folders(path: Path) -> list[str]:
    return sorted(one.name for one in path.iterdir() if one.is_dir())


def forget_metadata(path: Path) -> None:
    for name in (FILE_NAME, FILE_NAME + "-wal"):
        (path / name).unlink(missing_ok=True)


async def test_topics_and_the_cluster_id_are_the_same_after_a_restart(tmp_path: Path) -> None:
    async with running(tmp_path) as broker:
        await broker.topics.create([NewTopic("a", 2, 1, configs={"retention.ms": "77"}), NewTopic("b", 1, 1)])
        before = broker.image
    async with running(tmp_path) as broker:
        assert broker.image == before
        assert broker.partitions.get("a", 1) is not None
        assert broker.logs.logs[TopicPartition("a", 0)].config.retention_ms == 77


async def test_a_topic_survives_a_crash_right_after_it_was_created(tmp_path: Path) -> None:
    async with running(tmp_path, clean=False) as broker:
        created = await broker.topics.create_one(NewTopic("a", 2, 1))
    async with running(tmp_path) as broker:
        assert broker.image.topics["a"].id == created.id


async def test_a_missing_folder_is_made_again(tmp_path: Path) -> None:
    async with running(tmp_path) as broker:
        created = await broker.topics.create_one(NewTopic("a", 3, 1))
    shutil.rmtree(tmp_path / "a-1")
    async with running(tmp_path) as broker:
        assert folders(tmp_path) == ["a-0", "a-1", "a-2"]
        assert checkpoints.read_partition_metadata(tmp_path / "a-1") == created.id


async def test_a_missing_folder_of_a_partition_that_had_records_is_refused(tmp_path: Path) -> None:
    async with running(tmp_path) as broker:
        await broker.topics.create_one(NewTopic("a", 3, 1))
        for index in (1, 2):
            append(broker.logs.logs[TopicPartition("a", index)], b"precious")
    for index in (0, 1, 2):
        shutil.rmtree(tmp_path / f"a-{index}")
    with pytest.raises(OttlaError, match=r"a-1 \(and 1 more of this topic\) is missing.*make an empty folder"):
        async with running(tmp_path):
            pass
    (tmp_path / "a-1").mkdir()
    (tmp_path / "a-2").mkdir()
    async with running(tmp_path) as broker:
        assert [broker.logs.logs[TopicPartition("a", index)].log_end_offset for index in range(3)] == [0, 0, 0]
        assert append(broker.logs.logs[TopicPartition("a", 1)], b"next") == 0


async def test_a_topic_made_again_right_after_its_deletion_is_not_missed(tmp_path: Path) -> None:
    """The checkpoint still names the records of the deleted one when the broker dies before it makes the folder."""
    async with running(tmp_path) as broker:
        await broker.topics.create_one(NewTopic("a", 1, 1))
        append(broker.logs.logs[TopicPartition("a", 0)], b"x")
    points = (tmp_path / checkpoints.RECOVERY_POINTS).read_text()
    async with running(tmp_path, clean=False) as broker:
        await broker.topics.delete([broker.image.topics["a"]])
        await broker.topics.create_one(NewTopic("a", 1, 1))
    shutil.rmtree(tmp_path / "a-0")
    (tmp_path / checkpoints.RECOVERY_POINTS).write_text(points)
    async with running(tmp_path) as broker:
        assert broker.logs.logs[TopicPartition("a", 0)].log_end_offset == 0


async def test_a_folder_that_nobody_knows_is_set_aside_and_kept(tmp_path: Path) -> None:
    async with running(tmp_path) as broker:
        await broker.topics.create_one(NewTopic("a", 1, 1))
    (tmp_path / "ghost-0").mkdir()
    (tmp_path / "ghost-0" / "precious").write_text("data")
    (tmp_path / "a-7").mkdir()
    async with running(tmp_path) as broker:
        assert list(broker.image.topics) == ["a"]
        assert list(broker.logs.logs) == [TopicPartition("a", 0)]
    aside = [name for name in folders(tmp_path) if name.endswith("-stray")]
    assert [name.split(".")[0] for name in aside] == ["a-7", "ghost-0"]
    assert (tmp_path / aside[1] / "precious").read_text() == "data"


async def test_a_folder_of_an_earlier_topic_with_the_same_name_is_not_taken_for_the_new_one(tmp_path: Path) -> None:
    async with running(tmp_path) as broker:
        await broker.topics.create_one(NewTopic("a", 1, 1))
    checkpoints.write_partition_metadata(tmp_path / "a-0", random_topic_id())
    async with running(tmp_path) as broker:
        log = broker.logs.logs[TopicPartition("a", 0)]
        assert log.topic_id == broker.image.topics["a"].id
    assert len([name for name in folders(tmp_path) if name.endswith("-stray")]) == 1


async def test_a_folder_that_lost_its_topic_id_gets_it_back(tmp_path: Path) -> None:
    async with running(tmp_path) as broker:
        topic = await broker.topics.create_one(NewTopic("a", 1, 1))
    (tmp_path / "a-0" / checkpoints.PARTITION_METADATA).unlink()
    async with running(tmp_path) as broker:
        assert broker.logs.logs[TopicPartition("a", 0)].topic_id == topic.id
    assert checkpoints.read_partition_metadata(tmp_path / "a-0") == topic.id


async def test_a_new_topic_does_not_take_over_the_folder_of_a_dead_one(tmp_path: Path) -> None:
    async with running(tmp_path) as broker:
        (tmp_path / "a-0").mkdir()
        (tmp_path / "a-0" / "00000000000000000000.log").write_bytes(b"old records")
        checkpoints.write_partition_metadata(tmp_path / "a-0", random_topic_id())
        await broker.topics.create_one(NewTopic("a", 1, 1))
        assert broker.logs.logs[TopicPartition("a", 0)].size_bytes == 0
    assert len([name for name in folders(tmp_path) if name.endswith("-stray")]) == 1


async def test_a_deletion_that_a_crash_cut_short_is_finished(tmp_path: Path) -> None:
    async with running(tmp_path) as broker:
        topic = await broker.topics.create_one(NewTopic("a", 2, 1))
    store = EmbeddedStore(tmp_path / FILE_NAME)
    store.multi([Delete(nodes.topic_path("a")), Create(nodes.deletion_path(topic.id))])
    store.close()
    async with running(tmp_path) as broker:
        assert not broker.image.topics
        assert not broker.logs.logs
    assert not [name for name in folders(tmp_path) if name.endswith("-stray")]
    store = EmbeddedStore(tmp_path / FILE_NAME)
    assert store.children(nodes.DELETIONS) == []
    store.close()


async def test_leader_epochs_rise_after_a_crash_and_only_then(tmp_path: Path) -> None:
    async with running(tmp_path, clean=False) as broker:
        await broker.topics.create_one(NewTopic("a", 1, 1))
    async with running(tmp_path) as broker:
        assert broker.image.topics["a"].partitions[0].leader_epoch == 1
    async with running(tmp_path) as broker:
        assert broker.image.topics["a"].partitions[0].leader_epoch == 1


async def test_folders_without_metadata_are_refused_with_a_sentence(tmp_path: Path) -> None:
    async with running(tmp_path) as broker:
        await broker.topics.create_one(NewTopic("a", 1, 1))
    forget_metadata(tmp_path)
    with pytest.raises(OttlaError, match="start once"):
        async with running(tmp_path):
            pass
    assert folders(tmp_path) == ["a-0"]


async def test_folders_are_adopted_when_asked_for_and_keep_everything(tmp_path: Path) -> None:
    async with running(tmp_path) as broker:
        topic = await broker.topics.create_one(NewTopic("a", 2, 1, configs={"cleanup.policy": "compact"}))
        cluster_id = broker.image.cluster_id
        await broker.topics.ensure_internal("__consumer_offsets")
    shutil.rmtree(tmp_path / "a-0")
    checkpoints.write_epochs(tmp_path / "a-1" / checkpoints.LEADER_EPOCHS, [(0, 0), (6, 10)])
    (tmp_path / "__cluster_metadata-0").mkdir()
    forget_metadata(tmp_path)
    async with running(tmp_path, ottla_adopt_logs="true") as broker:
        adopted = broker.image.topics["a"]
        assert adopted.id == topic.id
        assert [one.leader_epoch for one in adopted.partitions] == [0, 7]
        assert adopted.configs == {"retention.ms": "-1", "retention.bytes": "-1"}
        assert broker.image.topics["__consumer_offsets"].configs["cleanup.policy"] == "compact"
        assert broker.image.cluster_id == cluster_id
        assert await broker.producer_ids.take() == ADOPTED_PRODUCER_ID_FLOOR
        assert "__cluster_metadata" not in broker.image.topics
    assert "__cluster_metadata-0" in folders(tmp_path)
    assert not [name for name in folders(tmp_path) if name.endswith("-stray")]


async def test_several_log_dirs_are_one_cluster(tmp_path: Path) -> None:
    first, second = tmp_path / "one", tmp_path / "two"
    async with running(first, second) as broker:
        await broker.topics.create_one(NewTopic("a", 4, 1))
        assert len(folders(first)) == len(folders(second)) == 2
    async with running(first, second) as broker:
        assert len(broker.logs.logs) == 4


async def test_producer_ids_go_on_where_they_were_after_a_crash(tmp_path: Path) -> None:
    async with running(tmp_path, clean=False) as broker:
        before = [await broker.producer_ids.take() for _ in range(3)]
    async with running(tmp_path) as broker:
        assert await broker.producer_ids.take() > max(before)
