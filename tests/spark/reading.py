"""What a plain consumer of committed records finds in a topic."""

from __future__ import annotations

from tests.spark.topics import consumed


def committed_records(servers: str, topic: str) -> list[tuple[bytes, bytes]]:
    """(key, value) of all records, in order within each partition."""
    return [(key, value) for _partition, _offset, key, value, *_ in sorted(consumed(servers, topic))]
