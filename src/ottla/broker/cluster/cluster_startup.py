"""What happens to metadata and logs when a broker of a cluster starts.

The first broker lays the ground in the store; the others find it, and check that their folders are of this cluster.
Logs of partitions that this broker has no replica of any more are removed where a note says that their topic was
deleted, else set aside. A replica that is not here is made anew, empty. If it was here once - its folder was synced, or
its log directory is gone (`controller/missing_replicas.py`) - that is noted, and the registration says so: such a
replica must not lead by what it was before. So it is with one of several that has a hole among synced records. One that
is not here for another reason, because it is new or because its folder was never synced, has lost nothing that a crash
does not lose.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ottla.broker.cluster import moving_in
from ottla.broker.controller.deletion_notes import concerns, confirm_deletions
from ottla.broker.controller.features import INITIAL_LEVELS
from ottla.broker.controller.first_users import add_first_users
from ottla.broker.controller.topic_startup import cluster_id_of, partition_folders
from ottla.common.errors import ApiError, OttlaError
from ottla.common.ids import ZERO_TOPIC_ID, TopicPartition, topic_id_from_text, topic_id_text
from ottla.common.random_ids import random_topic_id
from ottla.controller.missing_replicas import gone_directories, missing_replicas
from ottla.metadata import folding, nodes
from ottla.metadata.image import ClusterImage
from ottla.metastore import stored_image
from ottla.metastore.port import MetadataStore, Set, StoreConflict
from ottla.storage.disk import Disk, read_whole
from ottla.storage.log_config import LogConfig
from ottla.storage.log_dirs.checkpoints import META_PROPERTIES
from ottla.storage.log_dirs.log_dir import CLEAN_SHUTDOWN_FILE
from ottla.storage.log_manager import LogManager

log = logging.getLogger("ottla.cluster")

BOOT_FILE = "__ottla_boot_id"
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def boot_id() -> str:
    """Another one after each start of the machine; empty where that cannot be told."""
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return ""


def read_metadata(store: MetadataStore, dirs: Sequence[Path], first_users: str = "") -> ClusterImage:
    """The image to start with."""
    own_id = cluster_id_of(dirs)
    if stored_image.is_new(store) and moving_in.is_single_node(dirs[0]):
        moving_in.move_in(dirs[0], store)
    elif stored_image.is_new(store):
        _check_no_partitions(dirs)
        folders = (*nodes.FOLDERS, *nodes.CLUSTER_FOLDERS)
        cluster_id = own_id or topic_id_text(random_topic_id())
        try:
            stored_image.initialise(store, cluster_id, INITIAL_LEVELS, folders)
        except StoreConflict:
            store.sync()  # another broker was faster
    known = store.get(nodes.CLUSTER)
    if known is None:
        raise OttlaError("the metadata store holds something else than a cluster of Ottla: choose another chroot.")
    image = ClusterImage(*nodes.decode_named(nodes.CLUSTER, known.data, "cluster_id"))
    if own_id is not None and own_id != image.cluster_id:
        raise OttlaError(
            f"{dirs[0]} belongs to cluster {own_id}, but the store is of cluster {image.cluster_id}: check "
            "zookeeper.connect, or choose another data directory."
        )
    stored_image.add_missing_folders(store)
    add_first_users(store, first_users)
    return folding.with_nodes(image, stored_image.read_nodes(store, None, image), _complain)


def _check_no_partitions(dirs: Sequence[Path]) -> None:
    """A cluster that is new knows none, and would set all of them aside. Somebody has mistaken the place, or ZooKeeper
    has lost what it had."""
    there = partition_folders(dirs)
    if there:
        raise OttlaError(
            f"{there[0].path.parent} has partitions, such as {there[0].topic_partition}, but nothing is where "
            "zookeeper.connect leads to: check it, restore what ZooKeeper had, or choose another data directory."
        )


def _complain(path: str, error: Exception) -> None:
    raise nodes.damaged(path, error)


def lossy_dirs(dirs: Sequence[Path], booted: str) -> set[Path]:
    """Those that may lack records which were written to them. Ask before the logs are loaded. What a process has
    written stays when it is killed, and may be gone when its machine went down."""
    return {directory for directory in dirs if not _kept_everything(directory, booted)}


def _kept_everything(directory: Path, booted: str) -> bool:
    if (directory / CLEAN_SHUTDOWN_FILE).exists() or not (directory / META_PROPERTIES).exists():
        return True  # a new one has nothing to lose; what it stands for is told by its id
    try:
        return bool(booted) and read_whole(directory / BOOT_FILE).decode() == booted
    except (OSError, UnicodeDecodeError):
        return False


def note_boot(dirs: Sequence[Path], booted: str, disk: Disk) -> None:
    """From now on a crash is judged by this start of the machine."""
    for directory in dirs:
        disk.replace_file(directory / BOOT_FILE, booted.encode(), sync=True)


def reconcile(
    store: MetadataStore,
    image: ClusterImage,
    logs: LogManager,
    log_config: Callable[[Mapping[str, str]], LogConfig],
    node_id: int,
) -> None:
    """Bring the loaded logs in step with the image. `LogManager.made_anew` has those of which nothing was left, or not
    all that was synced."""
    deletions = {
        name
        for name in store.children(nodes.DELETIONS)
        if (note := store.get(f"{nodes.DELETIONS}/{name}")) is not None and concerns(note.data, node_id)
    }
    for tp, found in list(logs.logs.items()):
        topic = image.topics.get(tp.topic)
        is_ours = (
            topic is not None
            and tp.partition < len(topic.partitions)
            and node_id in topic.partitions[tp.partition].replicas
        )
        if topic is not None and is_ours and found.topic_id in (topic.id, ZERO_TOPIC_ID):
            if found.topic_id != topic.id:
                logs.name_topic(found, topic.id)
        elif topic_id_text(found.topic_id) in deletions or (topic is not None and found.topic_id == topic.id):
            logs.delete(tp)  # its topic was deleted, or the replica was moved away
        else:
            log.warning("setting aside a partition that the metadata does not know", extra={"folder": str(found.dir)})
            logs.set_aside(tp)
    absent = {
        TopicPartition(topic.name, index): topic
        for topic in image.topics.values()
        for index, partition in enumerate(topic.partitions)
        if node_id in partition.replicas and TopicPartition(topic.name, index) not in logs.logs
    }
    _note_lost(image, logs, node_id, list(absent))
    for tp, topic in absent.items():
        try:
            logs.create(tp, topic.id, log_config(topic.configs))
        except ApiError as error:
            if tp not in logs.unmade:
                raise
            # Only a broker that runs can be told to make room. It is made when there is some.
            log.error("a replica could not be made", extra={"partition": str(tp), "why": str(error)})
    confirm_deletions(store, map(topic_id_from_text, sorted(deletions)), node_id)
    _raise_producer_ids(store, logs)


def _raise_producer_ids(store: MetadataStore, logs: LogManager) -> None:
    """Logs that know producers which nobody was given yet: the metadata is from an older backup. A second producer with
    the same id would have its records taken for those of the first."""
    highest = max((producer for found in logs.logs.values() for producer in found.producers.entries), default=-1)
    while (node := store.get(nodes.PRODUCER_IDS)) is not None:
        (next_id,) = nodes.decode_named(nodes.PRODUCER_IDS, node.data, "next")
        if highest < next_id:
            return
        log.error(
            "the logs know producer ids that the metadata has not given away: was ZooKeeper restored from a backup? "
            "They are left out",
            extra={"next": next_id, "highest": highest},
        )
        with contextlib.suppress(StoreConflict):  # somebody has changed it meanwhile: look again
            store.multi([Set(nodes.PRODUCER_IDS, nodes.encode({"next": highest + 1}), node.version)])


def _note_lost(image: ClusterImage, logs: LogManager, node_id: int, absent: Sequence[TopicPartition]) -> None:
    here = directory_ids(logs)
    gone = gone_directories(image, node_id, here)
    found = {tp: topic_id_text(logs.dir_of(tp).directory_id) for tp in logs.logs} if gone else {}
    missing = list(missing_replicas(image, node_id, here, found))
    missing += [tp for tp in absent if tp in logs.lost and tp not in missing]
    if missing:
        log.error(
            "the log directory of replicas is gone: they begin anew, and copy their records from others",
            extra={"directories": ", ".join(gone), "replicas": len(missing), "first": str(missing[0])},
        )
    torn = [tp for tp, log_ in logs.logs.items() if log_.hole is not None and _has_copies(image, tp)]
    for tp in torn:
        logs.logs[tp].hide_behind_hole()
    if torn:
        first = logs.logs[torn[0]]
        log.error(
            "replicas lack records that were synced: they do not lead, and copy what follows from others",
            extra={"replicas": len(torn), "first": first.name, "offset": first.hole, "damage": "; ".join(first.damage)},
        )
    if missing or torn or logs.made_anew:
        logs.note_made_anew([*missing, *torn])


def _has_copies(image: ClusterImage, tp: TopicPartition) -> bool:
    """The only copy goes on with what is left."""
    topic = image.topics.get(tp.topic)
    return topic is not None and len(topic.partitions[tp.partition].replicas) > 1


def directory_ids(logs: LogManager) -> list[str]:
    """As meta.properties has them; of those that can be used."""
    return [topic_id_text(log_dir.directory_id) for log_dir in logs.dirs if log_dir.offline is None]
