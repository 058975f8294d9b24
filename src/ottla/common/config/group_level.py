"""The settings of one group: its own, else the broker's, kept within the broker's bounds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache

from ottla.common.config.broker_config import BrokerConfig, Source, SourcedText
from ottla.common.config.checks import Check, at_least, one_of
from ottla.common.config.layered import LayeredConfig
from ottla.common.config.setting import Setting, Synonym, Unit, boolean, integer, string
from ottla.common.errors import OttlaError

_SHARE = "Accepted for Kafka's sake, without effect: share groups are not served yet."
_STREAMS = "Accepted for Kafka's sake, without effect: streams groups are not served yet."
_DURATION = re.compile(r"by_duration:P(?=.)([0-9]+D)?(T(?=.)([0-9]+H)?([0-9]+M)?([0-9]+(\.[0-9]+)?S)?)?", re.IGNORECASE)


def _is_offset_reset(text: str) -> bool:
    return text in ("latest", "earliest") or bool(_DURATION.fullmatch(text))


def _of_broker(name: str, default: int, doc: str, low: int, unit: Unit = Unit.MS) -> Setting[int]:
    return integer(name, default, doc, unit=unit, check=at_least(low), synonyms=(Synonym(f"group.{name}"),))


class GroupConfig(LayeredConfig):
    what = "group"
    source = Source.DYNAMIC_GROUP_CONFIG

    consumer_session_timeout_ms = _of_broker(
        "consumer.session.timeout.ms", 45_000, "A member without a heartbeat for so long is removed.", 1
    )
    consumer_heartbeat_interval_ms = _of_broker(
        "consumer.heartbeat.interval.ms", 5_000, "How often members are told to send heartbeats.", 1
    )
    consumer_assignment_interval_ms = _of_broker(
        "consumer.assignment.interval.ms", 1_000, "The least time between two assignments of the group.", 0
    )
    share_assignment_interval_ms = _of_broker("share.assignment.interval.ms", 1_000, _SHARE, 0)
    share_auto_offset_reset = string(
        "share.auto.offset.reset",
        "latest",
        _SHARE,
        check=Check("latest, earliest or by_duration:PnDTnHnMn.nS", _is_offset_reset),
    )
    share_delivery_count_limit = _of_broker("share.delivery.count.limit", 5, _SHARE, 2, Unit.COUNT)
    share_heartbeat_interval_ms = _of_broker("share.heartbeat.interval.ms", 5_000, _SHARE, 1)
    share_isolation_level = string(
        "share.isolation.level", "read_uncommitted", _SHARE, check=one_of("read_committed", "read_uncommitted")
    )
    share_partition_max_record_locks = _of_broker("share.partition.max.record.locks", 2_000, _SHARE, 100, Unit.COUNT)
    share_record_lock_duration_ms = _of_broker("share.record.lock.duration.ms", 30_000, _SHARE, 1_000)
    share_renew_acknowledge_enable = boolean("share.renew.acknowledge.enable", True, _SHARE)
    share_session_timeout_ms = _of_broker("share.session.timeout.ms", 45_000, _SHARE, 1)
    streams_assignment_interval_ms = _of_broker("streams.assignment.interval.ms", 1_000, _STREAMS, 0)
    streams_heartbeat_interval_ms = _of_broker("streams.heartbeat.interval.ms", 5_000, _STREAMS, 1)
    streams_initial_rebalance_delay_ms = _of_broker("streams.initial.rebalance.delay.ms", 3_000, _STREAMS, 0)
    streams_num_standby_replicas = _of_broker("streams.num.standby.replicas", 0, _STREAMS, 0, Unit.COUNT)
    streams_session_timeout_ms = _of_broker("streams.session.timeout.ms", 45_000, _STREAMS, 1)

    def __init__(self, broker: BrokerConfig, overrides: Mapping[str, str]) -> None:
        """A stored value that the broker's bounds allow no longer is moved to the nearest bound, as Kafka does."""
        super().__init__(broker, overrides)
        for name, low, high in _bounds():
            value = self.value(name)
            value = max(value, broker.value(low)) if low else value
            value = min(value, broker.value(high)) if high else value
            self._apply({self.definitions()[name]: value})

    @classmethod
    def explain(cls, name: str, broker: BrokerConfig, overrides: Mapping[str, str]) -> Iterator[SourcedText]:
        """As Kafka, a setting that no broker property supplies names itself with its default."""
        yield from super().explain(name, broker, overrides)
        setting = cls.definitions()[name]
        if not setting.synonyms:
            yield SourcedText(name, setting.default_text, Source.DEFAULT_CONFIG)


def check_group_overrides(broker: BrokerConfig, overrides: Mapping[str, str]) -> None:
    """What a client may set: known names, good values, within the broker's bounds."""
    GroupConfig(broker, overrides)
    for name, low, high in _bounds():
        if name not in overrides:
            continue
        value = GroupConfig.definitions()[name].parse(overrides[name])
        if low and value < broker.value(low):
            raise OttlaError(f"{name} must be greater than or equal to {low} ({broker.value(low)}).")
        if high and value > broker.value(high):
            raise OttlaError(f"{name} must be less than or equal to {high} ({broker.value(high)}).")


@cache
def _bounds() -> tuple[tuple[str, str | None, str | None], ...]:
    """(setting, broker property with the least value, with the most) where the broker bounds a group's own values."""
    rows = ((name, _bound(name, "min"), _bound(name, "max")) for name in GroupConfig.definitions())
    return tuple(row for row in rows if row[1:] != (None, None))


def _bound(name: str, which: str) -> str | None:
    """`consumer.session.timeout.ms` -> `group.consumer.min.session.timeout.ms`, if there is such a property."""
    family, _, rest = name.partition(".")
    bound = f"group.{family}.{which}.{rest}".replace("max.num.standby", "max.standby")
    return bound if bound in BrokerConfig.known() else None
