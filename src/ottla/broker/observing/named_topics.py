"""Which topics have metrics under their own names, so that their number is bounded.

The busiest are named first, and a name once given is kept as long as the topic exists: a counter that came and went
would look like a restart each time. What all others do is counted together as `__other__`, by how much each has grown
since the last look, so that this only grows as well.
"""

from __future__ import annotations

from collections.abc import Collection

from ottla.broker.partitions.traffic import TopicTraffic, Traffic

OTHER = "__other__"
COUNTS = TopicTraffic.__slots__


class NamedTopics:
    def __init__(self, traffic: Traffic, topics_max: int) -> None:
        self._traffic = traffic
        self._topics_max = topics_max
        self._named: dict[str, None] = {}
        self._others = dict.fromkeys(COUNTS, 0)
        # What was seen last of each topic that is not named.
        self._seen: dict[str, tuple[int, ...]] = {}

    def look(self, existing: Collection[str]) -> dict[str, dict[str, int]]:
        """The counts of each named topic and of the others together."""
        for topic in [topic for topic in self._traffic if topic not in existing]:
            self._add_to_others(topic)
            del self._traffic[topic]
            self._named.pop(topic, None)
            self._seen.pop(topic, None)
        self._name_more()
        for topic in self._traffic:
            if topic not in self._named:
                self._add_to_others(topic)
        found = {
            topic: {count: getattr(self._traffic[topic], count) for count in COUNTS}
            for topic in self._named
            if topic in self._traffic
        }
        return {**found, OTHER: dict(self._others)}

    def __contains__(self, topic: str) -> bool:
        return topic in self._named

    def _name_more(self) -> None:
        room = self._topics_max - len(self._named)
        if room <= 0:
            return
        candidates = [topic for topic in self._traffic if topic not in self._named]
        candidates.sort(key=lambda topic: self._traffic[topic].bytes_in + self._traffic[topic].bytes_out, reverse=True)
        for topic in candidates[:room]:
            self._named[topic] = None

    def _add_to_others(self, topic: str) -> None:
        if topic in self._named:
            return  # it was told under its own name
        traffic = self._traffic[topic]
        now = tuple(getattr(traffic, count) for count in COUNTS)
        before = self._seen.get(topic, (0,) * len(COUNTS))
        for count, value, seen in zip(COUNTS, now, before, strict=True):
            self._others[count] += value - seen
        self._seen[topic] = now
