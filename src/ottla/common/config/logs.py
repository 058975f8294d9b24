"""Settings of logs: where they are, when they roll, what is kept, how they are cleaned and flushed.

Most of them are the defaults of topic settings (see topics.py, which names its synonyms here).
"""

from __future__ import annotations

from ottla.common.config.checks import NOT_EMPTY, at_least, between, between_or, each_of, one_of
from ottla.common.config.configuration import Configuration
from ottla.common.config.setting import Scope, Synonym, Unit, boolean, double, integer, long, names, string

LONG_MAX = 2**63 - 1
DAY_MS = 86_400_000
CODECS = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")


class LogPlaceSettings(Configuration):
    """Where logs are, and the books kept about them."""

    log_dir = names(
        "log.dir",
        ("/tmp/ottla-logs",),
        "The data directory if log.dirs is not set (Kafka's own default is /tmp/kafka-logs).",
        check=NOT_EMPTY,
    )
    log_dirs = names(
        "log.dirs",
        None,
        "Data directories, separated by commas; a new partition goes to the least used.",
        check=NOT_EMPTY,
    )
    log_initial_task_delay_ms = long(
        "log.initial.task.delay.ms",
        30_000,
        "How long after the start retention and checkpoints run for the first time.",
        unit=Unit.MS,
        check=at_least(0),
        internal=True,
    )
    log_flush_offset_checkpoint_interval_ms = integer(
        "log.flush.offset.checkpoint.interval.ms",
        60_000,
        "How often the recovery points, the high watermarks and the log start offsets are written.",
        unit=Unit.MS,
        check=at_least(0),
    )
    log_flush_scheduler_interval_ms = long(
        "log.flush.scheduler.interval.ms",
        LONG_MAX,
        "How often the broker looks for logs that are due for a flush by time, at least once a second.",
        unit=Unit.MS,
    )
    log_retention_check_interval_ms = long(
        "log.retention.check.interval.ms",
        300_000,
        "How often the broker looks for segments to delete and producers to forget.",
        unit=Unit.MS,
        check=at_least(1),
    )


class LogDefaultSettings(Configuration):
    """Defaults of topic settings."""

    log_segment_bytes = integer(
        "log.segment.bytes",
        1024**3,
        "A segment that would grow beyond this is closed and a new one begun.",
        unit=Unit.BYTES,
        check=at_least(1024**2),
        scope=Scope.CLUSTER_WIDE,
    )
    log_roll_ms = long(
        "log.roll.ms",
        None,
        "Age at which a segment is closed even if it is not full; if not set, log.roll.hours.",
        unit=Unit.MS,
        check=at_least(1),
        scope=Scope.CLUSTER_WIDE,
        synonyms=(Synonym("log.roll.hours", 3_600_000),),
    )
    log_roll_hours = integer(
        "log.roll.hours",
        168,
        "Age at which a segment is closed even if it is not full.",
        unit=Unit.HOURS,
        check=at_least(1),
    )
    log_roll_jitter_ms = long(
        "log.roll.jitter.ms",
        None,
        "The most that is taken off log.roll.ms at random; if not set, log.roll.jitter.hours.",
        unit=Unit.MS,
        check=at_least(0),
        scope=Scope.CLUSTER_WIDE,
        synonyms=(Synonym("log.roll.jitter.hours", 3_600_000),),
    )
    log_roll_jitter_hours = integer(
        "log.roll.jitter.hours",
        0,
        "The most that is taken off log.roll.hours at random, so that segments do not all roll at once.",
        unit=Unit.HOURS,
        check=at_least(0),
    )
    log_retention_ms = long(
        "log.retention.ms",
        None,
        "How long records are kept, -1 without limit; if not set, log.retention.minutes.",
        unit=Unit.MS,
        scope=Scope.CLUSTER_WIDE,
        synonyms=(Synonym("log.retention.minutes", 60_000), Synonym("log.retention.hours", 3_600_000)),
    )
    log_retention_minutes = integer(
        "log.retention.minutes", None, "How long records are kept; if not set, log.retention.hours.", unit=Unit.MINUTES
    )
    log_retention_hours = integer(
        "log.retention.hours", 168, "How long records are kept, -1 without limit.", unit=Unit.HOURS
    )
    log_retention_bytes = long(
        "log.retention.bytes",
        -1,
        "The size of a partition above which its oldest segments are deleted, -1 without limit.",
        unit=Unit.BYTES,
        scope=Scope.CLUSTER_WIDE,
    )
    log_segment_delete_delay_ms = long(
        "log.segment.delete.delay.ms",
        60_000,
        "How long a deleted segment's files stay on disk for readers that still hold them.",
        unit=Unit.MS,
        check=at_least(0),
        scope=Scope.CLUSTER_WIDE,
    )
    log_cleanup_policy = names(
        "log.cleanup.policy",
        ("delete",),
        "What happens to old records: delete by age and size, compact to the last value of each key, or both.",
        check=each_of("compact", "delete"),
        scope=Scope.CLUSTER_WIDE,
    )
    log_index_size_max_bytes = integer(
        "log.index.size.max.bytes",
        10 * 1024**2,
        "The largest offset index; a segment whose index is full is closed.",
        unit=Unit.BYTES,
        check=at_least(4),
        scope=Scope.CLUSTER_WIDE,
    )
    log_index_interval_bytes = integer(
        "log.index.interval.bytes",
        4096,
        "An index entry is written every so many bytes of log.",
        unit=Unit.BYTES,
        check=at_least(0),
        scope=Scope.CLUSTER_WIDE,
    )
    log_flush_interval_messages = long(
        "log.flush.interval.messages",
        LONG_MAX,
        "Records that may be appended before the log is forced to disk.",
        unit=Unit.COUNT,
        check=at_least(1),
        scope=Scope.CLUSTER_WIDE,
    )
    log_flush_interval_ms = long(
        "log.flush.interval.ms",
        None,
        "How long records may wait before the log is forced to disk; if not set, log.flush.scheduler.interval.ms.",
        unit=Unit.MS,
        scope=Scope.CLUSTER_WIDE,
        synonyms=(Synonym("log.flush.scheduler.interval.ms"),),
    )
    log_message_timestamp_type = string(
        "log.message.timestamp.type",
        "CreateTime",
        "Whether a record keeps the producer's time or gets the broker's.",
        check=one_of("CreateTime", "LogAppendTime"),
        scope=Scope.CLUSTER_WIDE,
    )
    log_message_timestamp_before_max_ms = long(
        "log.message.timestamp.before.max.ms",
        LONG_MAX,
        "How far a record's time may lie before the broker's; an older one is refused.",
        unit=Unit.MS,
        check=at_least(0),
        scope=Scope.CLUSTER_WIDE,
    )
    log_message_timestamp_after_max_ms = long(
        "log.message.timestamp.after.max.ms",
        3_600_000,
        "How far a record's time may lie after the broker's; a later one is refused.",
        unit=Unit.MS,
        check=at_least(0),
        scope=Scope.CLUSTER_WIDE,
    )
    message_max_bytes = integer(
        "message.max.bytes",
        1_048_588,
        "The largest record batch (after compression) that is accepted.",
        unit=Unit.BYTES,
        check=at_least(0),
        scope=Scope.CLUSTER_WIDE,
    )
    compression_type = string(
        "compression.type",
        "producer",
        "The codec batches are stored with; producer keeps what the client chose.",
        check=one_of(*CODECS),
        scope=Scope.CLUSTER_WIDE,
    )
    compression_gzip_level = integer(
        "compression.gzip.level",
        -1,
        "Level for compression.type=gzip; -1 is the library's own default.",
        check=between_or(1, 9, -1),
        scope=Scope.CLUSTER_WIDE,
    )
    compression_lz4_level = integer(
        "compression.lz4.level", 9, "Level for compression.type=lz4.", check=between(1, 17), scope=Scope.CLUSTER_WIDE
    )
    compression_zstd_level = integer(
        "compression.zstd.level",
        3,
        "Level for compression.type=zstd.",
        check=between(-131_072, 22),
        scope=Scope.CLUSTER_WIDE,
    )


class LogCleanerSettings(Configuration):
    """Compaction."""

    log_cleaner_enable = boolean("log.cleaner.enable", True, "Whether compacted topics are compacted at all.")
    log_cleaner_threads = integer(
        "log.cleaner.threads",
        1,
        "One log at a time is compacted, in a child process, whatever the number; 0 pauses compaction.",
        unit=Unit.COUNT,
        check=at_least(0),
        scope=Scope.CLUSTER_WIDE,
    )
    log_cleaner_backoff_ms = long(
        "log.cleaner.backoff.ms",
        15_000,
        "How long to wait before looking again when no log needs compaction.",
        unit=Unit.MS,
        check=at_least(0),
        scope=Scope.CLUSTER_WIDE,
    )
    log_cleaner_dedupe_buffer_size = long(
        "log.cleaner.dedupe.buffer.size",
        128 * 1024**2,
        "Memory for the map of keys of one compaction, which bounds how much of a log one pass covers.",
        unit=Unit.BYTES,
        scope=Scope.CLUSTER_WIDE,
    )
    log_cleaner_io_max_bytes_per_second = double(
        "log.cleaner.io.max.bytes.per.second",
        1.7976931348623157e308,
        "Bytes that compaction may read and write per second.",
        unit=Unit.BYTES,
        scope=Scope.CLUSTER_WIDE,
    )
    log_cleaner_delete_retention_ms = long(
        "log.cleaner.delete.retention.ms",
        DAY_MS,
        "How long a tombstone stays in a compacted log so that readers see the deletion.",
        unit=Unit.MS,
        check=at_least(0),
        scope=Scope.CLUSTER_WIDE,
    )
    log_cleaner_min_cleanable_ratio = double(
        "log.cleaner.min.cleanable.ratio",
        0.5,
        "The share of a log that must be new since the last compaction before it is compacted again.",
        check=between(0, 1),
        scope=Scope.CLUSTER_WIDE,
    )
    log_cleaner_min_compaction_lag_ms = long(
        "log.cleaner.min.compaction.lag.ms",
        0,
        "How long a record is left alone before compaction may touch it.",
        unit=Unit.MS,
        check=at_least(0),
        scope=Scope.CLUSTER_WIDE,
    )
    log_cleaner_max_compaction_lag_ms = long(
        "log.cleaner.max.compaction.lag.ms",
        LONG_MAX,
        "How long a record may wait for compaction whatever the dirty ratio.",
        unit=Unit.MS,
        check=at_least(1),
        scope=Scope.CLUSTER_WIDE,
    )
