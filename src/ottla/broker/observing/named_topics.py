"""Which topics have metrics under their own names, so that their number is bounded.

The busiest are named first, and a name once given is kept as long as the topic exists: a counter that came and went
would look like a restart each time. What all others do is counted together as `__other__`, by how much each has grown
since the last look, so that this only grows as well.
"""

from __future__ import annotations

from collections.abc import Collection
from heapq import nlargest

from ottla.broker.partitions.traffic import TopicTraffic, Traffic
from ottla.common.steps import Pauses, pieces

OTHER = "__other__"
COUNTS = TopicTraffic.__slots__
_NOTHING = (0,) * len(COUNTS)


class NamedTopics:
    def __init__(self, traffic: Traffic, topics_max: int) -> None:
        self._traffic = traffic
        self._topics_max = topics_max
        self._named: dict[str, None] = {}
        self._others = dict.fromkeys(COUNTS, 0)
        # What was told last of each topic that is not named, or was not once.
        self._seen: dict[str, tuple[int, ...]] = {}

    def look(self, existing: Collection[str]) -> Pauses[dict[str, dict[str, int]]]:
        """The counts of each named topic and of the others together."""
        for piece in pieces(list(self._traffic)):
            for topic in piece:
                if topic not in existing:
                    self._forget(topic)
            yield None
        self._name_more()
        for piece in pieces(list(self._traffic)):
            for topic in piece:
                if topic not in self._named:
                    self._add_to_others(topic)
            yield None
        found = {topic: self._since_named(topic) for topic in self._named if topic in self._traffic}
        return {**found, OTHER: dict(self._others)}

    def _since_named(self, topic: str) -> dict[str, int]:
        """Without what was told of it among the others, so that a sum over all is right."""
        traffic, told = self._traffic[topic], self._seen.get(topic, _NOTHING)
        return {count: getattr(traffic, count) - seen for count, seen in zip(COUNTS, told, strict=True)}

    def __contains__(self, topic: str) -> bool:
        return topic in self._named

    def _forget(self, topic: str) -> None:
        if topic in self._named:
            del self._named[topic]  # what it counted was told under its own name
        else:
            self._add_to_others(topic)
        self._traffic.pop(topic, None)
        self._seen.pop(topic, None)

    def _name_more(self) -> None:
        room = self._topics_max - len(self._named)
        if room <= 0:
            return
        candidates = (topic for topic in self._traffic if topic not in self._named)
        for topic in nlargest(room, candidates, key=self._bytes):
            self._named[topic] = None

    def _bytes(self, topic: str) -> int:
        traffic = self._traffic[topic]
        return traffic.bytes_in + traffic.bytes_out

    def _add_to_others(self, topic: str) -> None:
        traffic = self._traffic.get(topic)
        if traffic is None:
            return  # deleted meanwhile
        now = tuple(getattr(traffic, count) for count in COUNTS)
        before = self._seen.get(topic, _NOTHING)
        if now != before:
            for count, value, seen in zip(COUNTS, now, before, strict=True):
                self._others[count] += value - seen
            self._seen[topic] = now
