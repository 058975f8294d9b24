"""Settings of the transaction coordinator."""

from __future__ import annotations

from ottla.common.config.checks import at_least
from ottla.common.config.configuration import Configuration
from ottla.common.config.setting import Scope, Unit, boolean, integer, short


class TransactionSettings(Configuration):
    transaction_max_timeout_ms = integer(
        "transaction.max.timeout.ms",
        900_000,
        "The longest transaction.timeout.ms that a producer may ask for.",
        unit=Unit.MS,
        check=at_least(1),
    )
    transactional_id_expiration_ms = integer(
        "transactional.id.expiration.ms",
        604_800_000,
        "How long a transactional id without transactions is remembered.",
        unit=Unit.MS,
        check=at_least(1),
    )
    transaction_abort_timed_out_transaction_cleanup_interval_ms = integer(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        10_000,
        "How often transactions that are open for too long are looked for and aborted.",
        unit=Unit.MS,
        check=at_least(1),
    )
    transaction_remove_expired_transaction_cleanup_interval_ms = integer(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        3_600_000,
        "How often transactional ids that nobody uses any more are forgotten.",
        unit=Unit.MS,
        check=at_least(1),
    )
    transaction_partition_verification_enable = boolean(
        "transaction.partition.verification.enable",
        True,
        "Ask the coordinator before a partition takes the first batch of a transaction; without it a late batch can"
        " leave a transaction open for ever.",
        scope=Scope.CLUSTER_WIDE,
    )
    transaction_state_log_num_partitions = integer(
        "transaction.state.log.num.partitions",
        50,
        "Partitions of __transaction_state; cannot be changed once it is there.",
        unit=Unit.COUNT,
        check=at_least(1),
    )
    transaction_state_log_replication_factor = short(
        "transaction.state.log.replication.factor",
        3,
        "Replicas of __transaction_state, at most as many as there are brokers.",
        unit=Unit.COUNT,
        check=at_least(1),
    )
    transaction_state_log_min_isr = integer(
        "transaction.state.log.min.isr",
        2,
        "min.insync.replicas of __transaction_state, at most as many as there are brokers.",
        unit=Unit.COUNT,
        check=at_least(1),
    )
    transaction_state_log_segment_bytes = integer(
        "transaction.state.log.segment.bytes",
        104_857_600,
        "Segment size of __transaction_state.",
        unit=Unit.BYTES,
        check=at_least(1),
    )
