"""Few topics have names of their own, nothing is lost, and no counter goes back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ottla.broker.observing.named_topics import OTHER, NamedTopics
from ottla.broker.partitions.traffic import Traffic
from ottla.common.steps import to_the_end

TOPICS = [f"t{number}" for number in range(6)]
# So many bytes come to a topic, or it is deleted (0).
_steps = st.lists(st.lists(st.tuples(st.sampled_from(TOPICS), st.integers(0, 5)), max_size=8), max_size=12)


@given(_steps, st.integers(0, 4))
def test_any_history(steps: list[list[tuple[str, int]]], topics_max: int) -> None:
    traffic = Traffic()
    named = NamedTopics(traffic, topics_max)
    before: dict[str, int] = {}
    told_of_deleted, total = 0, 0
    for step in steps:
        existing = set(TOPICS)
        for topic, size in step:
            if size:
                traffic[topic].bytes_in += size
                total += size
        deleted = {topic for topic, size in step if not size}
        existing -= deleted
        gone = {topic: before[topic] for topic in deleted & traffic.keys() if topic in named}
        # What came to a named one since it was last told, and is deleted, nobody hears of.
        lost = sum(size for topic, size in step if topic in gone)
        total -= lost
        counts = {topic: its["bytes_in"] for topic, its in to_the_end(named.look(existing)).items()}
        told_of_deleted += sum(gone.values())
        assert len(counts) <= topics_max + 1
        assert sum(counts.values()) + told_of_deleted == total
        for topic, count in counts.items():
            assert topic in deleted or count >= before.get(topic, 0)
        assert {topic for topic in before if topic not in deleted} <= counts.keys()
        before = counts
    assert OTHER in before or not steps


def test_the_busiest_are_named_first() -> None:
    traffic = Traffic()
    for number, topic in enumerate(TOPICS):
        traffic[topic].bytes_in = number
    named = NamedTopics(traffic, 2)
    assert to_the_end(named.look(TOPICS)).keys() == {"t5", "t4", OTHER}
