"""A partition of which this broker has a replica while another leads: its log, and whom it is fetched from.

There is a new one for each leader epoch, so that an answer to a fetch of an older epoch finds nobody to give it to.
"""

from __future__ import annotations

import logging

from ottla.broker.partitions.fetch_sessions import Key
from ottla.broker.partitions.readers import Readers
from ottla.metadata.image import TopicImage
from ottla.records.batch import HEADER, HEADER_SIZE
from ottla.storage.log import Log
from ottla.storage.log_config import LogConfig

logger = logging.getLogger("ottla.broker")


class FollowedPartition(Readers):
    __slots__ = (
        "asked_offset",
        "config",
        "failures",
        "index",
        "is_caught_up",
        "is_current",
        "key",
        "leader",
        "leader_epoch",
        "log",
        "topic",
        "topic_id",
    )

    def __init__(self, topic: TopicImage, index: int, log: Log, config: LogConfig) -> None:
        super().__init__()
        image = topic.partitions[index]
        self.topic = topic.name
        self.topic_id = topic.id
        self.index = index
        self.key: Key = (topic.id, index)
        self.leader = image.leader
        self.leader_epoch = image.leader_epoch
        self.log = log
        # Until another leader epoch, or none of ours.
        self.is_current = True
        # It has all that is committed, as far as its leader has told.
        self.is_caught_up = False
        # What the fetch that is under way asks for; -1: it does not ask for this partition.
        self.asked_offset = -1
        # How often in a row it could not be fetched.
        self.failures = 0
        self.set_config(config)

    def __repr__(self) -> str:
        return f"FollowedPartition({self.topic}-{self.index}, epoch {self.leader_epoch} of {self.leader})"

    def set_config(self, config: LogConfig) -> None:
        self.config = config
        self.log.set_config(config)

    def replace_log(self, log: Log) -> None:
        """The same records in another log directory."""
        self.log = log
        log.set_config(self.config)

    def stop(self) -> None:
        self.is_current = False
        self.notify()

    def learn(self, leader_watermark: int, leader_log_start: int) -> bool:
        """What the leader says of the log as far as we have it; neither ever goes back. Whether it begins later now."""
        log = self.log
        self.is_caught_up = leader_watermark <= log.log_end_offset
        watermark = min(leader_watermark, log.log_end_offset)
        if watermark > log.high_watermark:
            log.high_watermark = watermark
            if self._watchers:
                self.notify()
        start = min(leader_log_start, log.high_watermark)
        if start > log.log_start_offset:
            log.set_log_start(start)
            return True
        return False

    def truncate_to(self, offset: int, now_ms: int) -> None:
        """Our log went another way than the leader's from here on."""
        log = self.log
        where = {"partition": log.name, "offset": offset, "end_offset": log.log_end_offset, "epoch": self.leader_epoch}
        if offset < log.high_watermark:
            # Only an unclean election makes this happen: records that were committed are gone.
            logger.error(
                "truncating a replica below its high watermark", extra=where | {"watermark": log.high_watermark}
            )
        elif offset < log.log_end_offset:
            logger.info("truncating a replica", extra=where)
        log.truncate_to(offset, now_ms)

    def cut_at_hole(self, now_ms: int) -> None:
        """Some of our records are missing, below what was synced."""
        log = self.log
        where = {"partition": log.name, "offset": log.hole, "end_offset": log.log_end_offset}
        logger.warning("cutting a replica where its records are missing", extra=where)
        log.cut_at_hole(now_ms)

    def begin_with(self, records: memoryview, now_ms: int) -> None:
        """Records may be deleted up to the middle of a batch, and batches are fetched whole: an empty log that begins
        there goes back to where the batch begins. Readers see nothing of it below the leader's log start."""
        log = self.log
        if log.log_start_offset != log.log_end_offset or len(records) < HEADER_SIZE:
            return
        header = HEADER.unpack_from(records)
        first_offset, last_offset = header[0], header[0] + header[6]
        if first_offset < log.log_end_offset <= last_offset:
            log.restart_at(first_offset, now_ms)

    def restart_at(self, offset: int, now_ms: int) -> None:
        """The leader has deleted what comes next: our records are older than any that it has."""
        log = self.log
        where = {"partition": log.name, "offset": offset, "end_offset": log.log_end_offset, "epoch": self.leader_epoch}
        logger.warning("a replica begins anew where its leader's log begins", extra=where)
        log.restart_at(offset, now_ms)
