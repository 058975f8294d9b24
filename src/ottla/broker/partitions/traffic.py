"""How much comes in and goes out, by topic: plain counts that outlive the partitions of a topic that move away."""

from __future__ import annotations


class TopicTraffic:
    __slots__ = ("bytes_in", "bytes_out", "fetches_failed", "produces_failed", "records_in")

    def __init__(self) -> None:
        self.bytes_in = 0
        self.records_in = 0
        # To consumers, not to followers.
        self.bytes_out = 0
        # Partitions of requests that were answered with an error.
        self.produces_failed = 0
        self.fetches_failed = 0


class Traffic(dict[str, TopicTraffic]):
    """Made as topics are met."""

    def __missing__(self, topic: str) -> TopicTraffic:
        made = self[topic] = TopicTraffic()
        return made
