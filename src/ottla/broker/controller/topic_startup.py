"""What happens to topics when a broker starts: the metadata store and the folders in the log dirs must agree.

Before the logs are loaded (`read_metadata`): a new store gets its cluster id, from `meta.properties` where a folder has
been in use. After (`reconcile`): a partition without a folder gets one; a folder that the metadata does not know is set
aside as Kafka does it, renamed to `-stray` and left alone; the rest of a deletion that a crash cut short is done.

Folders without metadata are never taken in silently, because the settings of their topics are not in them: a compacted
topic under default retention would lose its data within a week. A broker whose store is new and whose folders are not
refuses to start and says so. With `ottla.adopt.logs=true` unknown folders become topics. Their settings come from the
metadata log that Kafka left beside them; where there is none, internal topics get the settings they always have and
others keep everything (`retention.ms=-1`) until somebody decides otherwise.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from ottla.broker.controller import kraft_metadata
from ottla.broker.controller.features import INITIAL_LEVELS
from ottla.broker.controller.first_users import add_first_users
from ottla.common.errors import OttlaError
from ottla.common.ids import ZERO_TOPIC_ID, TopicId, TopicPartition, topic_id_text
from ottla.common.random_ids import random_topic_id
from ottla.controller.topic_plan import METADATA_TOPIC
from ottla.metadata import image as images
from ottla.metadata import nodes
from ottla.metadata.image import INTERNAL_TOPICS, ClusterImage, TopicImage, initial_partition
from ottla.metastore import stored_image
from ottla.metastore.embedded import FILE_NAME as METADATA_FILE
from ottla.metastore.port import Create, Delete, MetadataStore, Set
from ottla.storage.log_config import LogConfig
from ottla.storage.log_dirs import checkpoints
from ottla.storage.log_dirs.log_dir import CLEAN_SHUTDOWN_FILE
from ottla.storage.log_dirs.log_names import parse_folder
from ottla.storage.log_manager import LogManager

log = logging.getLogger("ottla.topics")

KEEP_EVERYTHING: Mapping[str, str] = {"retention.ms": "-1", "retention.bytes": "-1"}
# Kafka counts producer ids from 0; ours start so far above after an adoption that the two never meet.
ADOPTED_PRODUCER_ID_FLOOR = 2**40
# What is left of the metadata of a node that has moved into a cluster (`broker/cluster/moving_in.py`).
MOVED_FILE = f"{METADATA_FILE}.moved"


class Folder(NamedTuple):
    path: Path
    topic_partition: TopicPartition
    topic_id: TopicId


def read_metadata(
    store: MetadataStore,
    dirs: Sequence[Path],
    *,
    node_id: int,
    adopt: bool,
    internal_configs: Callable[[str], Mapping[str, str]],
    first_users: str = "",
) -> ClusterImage:
    """The image to start with. Raises OttlaError where folders are found that nothing is known about."""
    new = stored_image.is_new(store)
    folders = partition_folders(dirs) if new or adopt else []
    if new:
        if (dirs[0] / MOVED_FILE).exists():
            raise OttlaError(
                f"{dirs[0]} belongs to a broker of a cluster: start it with zookeeper.connect, as it was before."
            )
        if folders and not adopt:
            raise OttlaError(
                f"{dirs[0]} holds partitions (such as {folders[0].topic_partition}) but no metadata of Ottla; start "
                "once with -X ottla.adopt.logs=true to take them in, or choose another data directory."
            )
        stored_image.initialise(store, cluster_id_of(dirs) or topic_id_text(random_topic_id()), INITIAL_LEVELS)
    stored_image.add_missing_folders(store)
    add_first_users(store, first_users)
    image = stored_image.load_image(store)
    if not new and not all((path / CLEAN_SHUTDOWN_FILE).exists() for path in dirs):
        image = raise_leader_epochs(store, image)
    if adopt:
        image = _adopt(store, image, folders, node_id, _settings(dirs, internal_configs))
    return image


def partition_folders(dirs: Iterable[Path]) -> list[Folder]:
    """Those that are in use, in all data directories."""
    found = []
    for directory in dirs:
        if not directory.is_dir():
            continue
        for name in sorted(os.listdir(directory)):
            folder = parse_folder(name)
            if folder is None or folder.mark or folder.topic_partition.topic == METADATA_TOPIC:
                continue
            topic_id = checkpoints.read_partition_metadata(directory / name) or ZERO_TOPIC_ID
            found.append(Folder(directory / name, folder.topic_partition, topic_id))
    return found


def cluster_id_of(dirs: Iterable[Path]) -> str | None:
    for directory in dirs:
        try:
            meta = checkpoints.read_meta_properties(directory)
        except ValueError as error:
            raise OttlaError(f"{error}; this is not a data directory that this broker can use.") from None
        if meta is not None:
            return meta.cluster_id
    return None


def _adopt(
    store: MetadataStore,
    image: ClusterImage,
    folders: Iterable[Folder],
    node_id: int,
    settings: Callable[[str, TopicId], Mapping[str, str]],
) -> ClusterImage:
    unknown: dict[str, list[Folder]] = {}
    for folder in folders:
        if folder.topic_partition.topic not in image.topics:
            unknown.setdefault(folder.topic_partition.topic, []).append(folder)
    if not unknown:
        return image
    adopted = [_adopted_topic(name, members, node_id, settings) for name, members in unknown.items()]
    first_id = max(image.next_producer_id, ADOPTED_PRODUCER_ID_FLOOR)
    store.multi(
        [
            *(Create(nodes.topic_path(topic.name), nodes.encode_topic(topic)) for topic in adopted),
            Set(nodes.PRODUCER_IDS, nodes.encode({"next": first_id})),
        ],
        urgent=True,
    )
    log.warning("took in topics that were found in the log dirs", extra={"topics": [topic.name for topic in adopted]})
    return images.with_next_producer_id(images.with_topics(image, adopted), first_id)


def _settings(
    dirs: Iterable[Path], internal_configs: Callable[[str], Mapping[str, str]]
) -> Callable[[str, TopicId], Mapping[str, str]]:
    told: dict[TopicId, Mapping[str, str]] = {}
    for directory in dirs:
        told.update(kraft_metadata.topic_configs(directory))

    def settings(name: str, topic_id: TopicId) -> Mapping[str, str]:
        if topic_id in told:
            return told[topic_id]
        return internal_configs(name) if name in INTERNAL_TOPICS else KEEP_EVERYTHING

    return settings


def _adopted_topic(
    name: str, folders: Iterable[Folder], node_id: int, settings: Callable[[str, TopicId], Mapping[str, str]]
) -> TopicImage:
    by_index = {folder.topic_partition.partition: folder for folder in folders}
    ids = [folder.topic_id for folder in by_index.values() if folder.topic_id != ZERO_TOPIC_ID]
    partitions = []
    for index in range(max(by_index) + 1):
        at = by_index.get(index)
        epochs = None if at is None else checkpoints.read_epochs(at.path / checkpoints.LEADER_EPOCHS)
        # A new leader begins a new epoch, above all that the log has seen.
        partitions.append(initial_partition((node_id,), epochs[-1][0] + 1 if epochs else 0))
    topic_id = ids[0] if ids else random_topic_id()
    return TopicImage(name, topic_id, tuple(partitions), settings(name, topic_id))


def reconcile(
    store: MetadataStore,
    image: ClusterImage,
    logs: LogManager,
    log_config: Callable[[Mapping[str, str]], LogConfig],
) -> None:
    """Bring the loaded logs in step with the image. Raises OttlaError where a log dir cannot be used, or the folder of
    a partition that had records is gone: made again they would be empty, without a word to anybody."""
    for log_dir in logs.dirs:
        if log_dir.offline is not None:
            raise OttlaError(f"The log directory {log_dir.path} cannot be used: {log_dir.offline}.")
    deletions = store.children(nodes.DELETIONS)
    for topic_partition, found in list(logs.logs.items()):
        topic = image.topics.get(topic_partition.topic)
        if (
            topic is not None
            and topic_partition.partition < len(topic.partitions)
            and found.topic_id in (topic.id, ZERO_TOPIC_ID)
        ):
            if found.topic_id != topic.id:
                logs.name_topic(found, topic.id)
            continue
        if topic_id_text(found.topic_id) in deletions:
            logs.delete(topic_partition)
        else:
            log.warning("setting aside a partition that the metadata does not know", extra={"folder": str(found.dir)})
            logs.set_aside(topic_partition)
    for topic in image.topics.values():
        missing = [
            index for index in range(len(topic.partitions)) if TopicPartition(topic.name, index) not in logs.logs
        ]
        if missing:
            _check_nothing_lost(topic.name, missing, logs)
            config = log_config(topic.configs)
            for index in missing:
                logs.create(TopicPartition(topic.name, index), topic.id, config)
    if deletions:
        store.multi([Delete(f"{nodes.DELETIONS}/{deletion}") for deletion in deletions], urgent=True)


def _check_nothing_lost(topic: str, missing: Iterable[int], logs: LogManager) -> None:
    lost = [path for index in missing if (path := logs.lost.get(TopicPartition(topic, index))) is not None]
    if lost:
        more = f" (and {len(lost) - 1} more of this topic)" if len(lost) > 1 else ""
        raise OttlaError(
            f"The folder {lost[0]}{more} is missing, and it had records; put it back from a backup, or make an empty "
            "folder of that name to go on without them."
        )


def raise_leader_epochs(store: MetadataStore, image: ClusterImage) -> ClusterImage:
    """After a crash that may have cost unflushed records: offsets can be given out a second time now, and only a new
    leader epoch lets a consumer beyond the cut notice (KIP-320)."""
    if not image.topics:
        return image
    raised = [
        replace(
            topic,
            partitions=tuple(
                replace(
                    partition, leader_epoch=partition.leader_epoch + 1, partition_epoch=partition.partition_epoch + 1
                )
                for partition in topic.partitions
            ),
        )
        for topic in image.topics.values()
    ]
    # Urgent, as all that a start writes: only a broker that runs can be told to make room.
    store.multi([Set(nodes.topic_path(topic.name), nodes.encode_topic(topic)) for topic in raised], urgent=True)
    return images.with_topics(image, raised)
