"""The settings that group machines act on, under names with their units; the broker fills them from its properties."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

INT_MAX = 2**31 - 1


class MigrationPolicy(Enum):
    """group.consumer.migration.policy: which way a group may change its protocol while it has members."""

    BIDIRECTIONAL = "bidirectional"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    DISABLED = "disabled"

    @property
    def may_upgrade(self) -> bool:
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.UPGRADE)

    @property
    def may_downgrade(self) -> bool:
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.DOWNGRADE)


class ConsumerSettings(NamedTuple):
    """What a consumer group may have settings of its own for."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    # A burst of joins within this time makes one new assignment, not one for each.
    assignment_interval_ms: int = 1_000


@dataclass(frozen=True, slots=True)
class GroupConfig:
    # Classic groups.
    session_timeout_ms_min: int = 6_000
    session_timeout_ms_max: int = 1_800_000
    initial_rebalance_delay_ms: int = 3_000
    members_max: int = INT_MAX
    # A member that has just joined does not know its id and cannot heartbeat, so its session cannot expire. This bounds
    # how long it may sit in a join that its client has perhaps given up on (KAFKA-7610).
    new_member_join_timeout_ms: int = 300_000
    # Ids handed out with MEMBER_ID_REQUIRED and not used yet; each expires with its session (KAFKA-9752).
    pending_members_max: int = 10_000
    # Consumer groups (KIP-848).
    consumer: ConsumerSettings = field(default_factory=ConsumerSettings)
    consumer_members_max: int = INT_MAX
    consumer_assignors: tuple[str, ...] = ("uniform", "range")
    consumer_regex_refresh_interval_ms: int = 600_000
    # New topics make a group look at its regular expressions again, but no more often than this.
    consumer_regex_refresh_interval_ms_min: int = 1_000
    migration_policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL
    # Offsets.
    offset_metadata_bytes_max: int = 4_096
    offsets_retention_ms: int = 7 * 24 * 60 * 60 * 1_000
