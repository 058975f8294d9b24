"""Heartbeats: records that say at which time the stream was still read, into a topic of their own, as Debezium has
them."""

from __future__ import annotations

import time

import pyarrow as pa

from ottla.connect.api.data import Column, Records
from ottla.connect.databases.changes.envelope import INT64, STRING
from ottla.connect.databases.schemas import arrow_type, struct

_KEY = struct("io.debezium.connector.common.ServerNameKey", [("serverName", STRING)])
_VALUE = struct("io.debezium.connector.common.Heartbeat", [("ts_ms", INT64)])


def heartbeat(topic_prefix: str, heartbeat_prefix: str) -> Records:
    now = int(time.time() * 1000)
    return Records(
        topics=pa.array([f"{heartbeat_prefix}.{topic_prefix}"]),
        partitions=pa.nulls(1, pa.int32()),
        timestamps=pa.nulls(1, pa.int64()),
        keys=Column(_KEY, pa.array([{"serverName": topic_prefix}], arrow_type(_KEY))),
        values=Column(_VALUE, pa.array([{"ts_ms": now}], arrow_type(_VALUE))),
    )
