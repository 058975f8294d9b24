"""The partitions this broker leads: each one a log, the rules for writing to it, and who waits for it.

Lookups are by the bytes a request carries (UTF-8 name or raw topic id): the hot path decodes no strings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ottla.common.ids import TopicId
from ottla.metadata.image import TopicImage
from ottla.records.compression import Codec
from ottla.records.validate import Rules
from ottla.storage.log import Log
from ottla.storage.log_config import LONG_MAX, LogConfig

# Called with how many more bytes can be read; EVERYTHING when whoever waits must look again whatever it waits for.
Watcher = Callable[[int], None]
EVERYTHING = 1 << 62


class Partition:
    __slots__ = (
        "_watchers",
        "config",
        "index",
        "is_internal",
        "leader_epoch",
        "log",
        "rules",
        "takes_plain_batches",
        "topic",
        "topic_id",
    )

    def __init__(self, topic: TopicImage, index: int, log: Log, config: LogConfig) -> None:
        self.topic = topic.name
        self.topic_id = topic.id
        self.index = index
        self.is_internal = topic.is_internal
        self.leader_epoch = topic.partitions[index].leader_epoch
        self.log = log
        # A dict for its order, and because thousands may wait here and all leave at once.
        self._watchers: dict[Watcher, None] = {}
        self.set_config(config)

    def replace_log(self, log: Log) -> None:
        """The same records in another log directory."""
        self.log = log
        log.leader_epochs.assign(self.leader_epoch, log.log_end_offset)
        log.set_config(self.config)

    def set_config(self, config: LogConfig) -> None:
        self.config = config
        self.log.set_config(config)
        self.rules = Rules(
            max_message_bytes=config.max_message_bytes,
            segment_bytes=config.segment_bytes,
            log_append_time=config.message_timestamp_type == "LogAppendTime",
            timestamp_before_max_ms=config.message_timestamp_before_max_ms,
            timestamp_after_max_ms=config.message_timestamp_after_max_ms,
            keys_required=config.cleanup_compact,
            codec_name=config.compression_type,
            codec_levels={
                Codec.GZIP: config.compression_gzip_level,
                Codec.LZ4: config.compression_lz4_level,
                Codec.ZSTD: config.compression_zstd_level,
            },
        )
        # A usual batch can be written and answered with no further question.
        self.takes_plain_batches = (
            not self.is_internal
            and not self.rules.may_open_records
            and config.min_insync_replicas <= 1
            and config.flush_messages == LONG_MAX
        )

    # --- who waits for new records

    def watch(self, callback: Watcher) -> None:
        self._watchers[callback] = None

    def unwatch(self, callback: Watcher) -> None:
        self._watchers.pop(callback, None)

    def advance_high_watermark(self, appended_bytes: int, to_offset: int | None = None) -> None:
        """On one node what is in the log (and flushed, where that was asked for) is committed."""
        log = self.log
        log.high_watermark = log.log_end_offset if to_offset is None else max(log.high_watermark, to_offset)
        if self._watchers:
            self.notify(appended_bytes)

    async def publish_when_flushed(self, appended_bytes: int = 0) -> None:
        """What is in the log now is on disk when this is done, and readers may see it. Raises ApiError."""
        await self.log.flush_async()
        # Not to the log end: what came in during the flush is not on disk yet.
        self.advance_high_watermark(appended_bytes, self.log.recovery_point)

    def notify(self, size: int = EVERYTHING) -> None:
        for callback in tuple(self._watchers):
            callback(size)


class Partitions:
    """All partitions by topic name, by topic id and by the raw bytes of either."""

    def __init__(self) -> None:
        self._by_key: dict[bytes, list[Partition]] = {}
        self._by_name: dict[str, list[Partition]] = {}

    def get(self, topic: str, index: int) -> Partition | None:
        found = self._by_name.get(topic)
        return found[index] if found is not None and 0 <= index < len(found) else None

    def get_by_id(self, topic_id: TopicId, index: int) -> Partition | None:
        return self.get_by_key(topic_id, index)

    def get_by_key(self, key: bytes, index: int) -> Partition | None:
        """`key` is a name in UTF-8 or a topic id: no valid name starts as an id does often enough to matter, and ids
        are random, so one table serves both."""
        found = self._by_key.get(key)
        return found[index] if found is not None and 0 <= index < len(found) else None

    def knows(self, key: bytes) -> bool:
        return key in self._by_key

    def of_topic(self, topic: str) -> list[Partition]:
        return self._by_name.get(topic, [])

    def add_topic(self, topic: TopicImage, partitions: list[Partition]) -> None:
        self._by_name[topic.name] = partitions
        self._by_key[topic.name.encode()] = partitions
        self._by_key[topic.id] = partitions

    def remove_topic(self, topic: TopicImage) -> None:
        removed = self._by_name.pop(topic.name, [])
        self._by_key.pop(topic.name.encode(), None)
        self._by_key.pop(topic.id, None)
        for partition in removed:
            partition.notify()  # parked fetches learn that the topic is gone

    def __iter__(self) -> Iterator[Partition]:
        for partitions in self._by_name.values():
            yield from partitions

    def __len__(self) -> int:
        return sum(len(one) for one in self._by_name.values())
