"""What is optimised, and that it can be seen: shared repartition topics and native stages."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from typing import Any

import pytest

pytest.importorskip("sqlglot")

from ottla.streams import JoinWindows, StreamsBuilder, Topology, TopologyTestDriver, serdes, sql


def upper(key: Any, value: str) -> str:
    return value.upper()


def three_uses(**options: Any) -> Topology:
    builder = StreamsBuilder(key=serdes.string, value=serdes.string, **options)
    words = builder.stream("words").select_key(upper)
    words.group_by_key().count(store="counts").to_stream().to("counts", value=serdes.integer)
    words.group_by_key(name="longest").reduce(max, store="last").to_stream().to("last")
    titles = builder.table("titles", store="titles")
    words.join(titles, lambda word, title: f"{title} {word}").to("joined")
    return builder.build()


def outputs(topology: Topology) -> list[list[Any]]:
    with TopologyTestDriver(topology) as driver:
        driver.input_topic("titles").pipe("Mr", key="BE")
        for at, word in enumerate(["be", "to", "be"]):
            driver.input_topic("words").pipe(word, key="k", timestamp=at)
        return [driver.output_topic(name).read_all() for name in ("counts", "last", "joined")]


def test_operators_after_one_change_of_the_key_share_a_topic() -> None:
    merged, apart = three_uses(), three_uses(merge_repartitions=False)
    assert list(merged.internal_topics) == ["counts-repartition"]
    assert len(apart.internal_topics) == 3
    assert outputs(merged) == outputs(apart)
    text = merged.describe()
    assert "Merged repartition: counts-repartition (for: KSTREAM-AGGREGATE-" in text
    assert "KSTREAM-REDUCE-" in text.rsplit("Merged", 1)[1] and "KSTREAM-JOIN-" in text.rsplit("Merged", 1)[1]
    assert "Optimisations" not in apart.describe()


def test_what_changes_the_key_again_or_is_written_otherwise_has_a_topic_of_its_own() -> None:
    builder = StreamsBuilder(key=serdes.string, value=serdes.string)
    words = builder.stream("words").select_key(upper)
    words.group_by_key().count(store="a")
    words.group_by(upper).count(store="b")
    words.group_by_key(value=serdes.raw).count(store="c")
    words.repartition(name="explicit").group_by_key().count(store="d")
    words.join(words.map_values(upper), lambda one, other: one, JoinWindows.of(5))
    topology = builder.build()
    assert {"a-repartition", "b-repartition", "c-repartition", "explicit-repartition"} < topology.internal_topics.keys()
    # The left side of the join is the stream that is grouped as `a`; its right side is another stream.
    assert len(topology.internal_topics) == 5


def native() -> Topology:
    builder = StreamsBuilder(key=serdes.string)
    orders = builder.stream("orders", value=serdes.row("customer STRING, amount DOUBLE"))
    large = orders.filter(sql("amount >\n 100"), name="large")
    large.group_by(sql("customer")).aggregate(sql("sum(amount) AS total"), store="totals", name="sum")
    return builder.build()


def test_native_stages_stand_in_the_description() -> None:
    _, optimised = native().describe().split("   Optimisations:\n")
    assert optimised.splitlines()[:4] == [
        "    Native stage: 0 (on columns: KSTREAM-SOURCE-0000000000, large, KSTREAM-KEY-SELECT-0000000002, "
        "totals-repartition-filter, totals-repartition-sink)",
        "      large: amount > 100",
        "      KSTREAM-KEY-SELECT-0000000002: customer",
        "    Native stage: 1 (on columns: totals-repartition-source, sum)",
    ]


def test_pictures_show_both() -> None:
    mermaid = native().describe_as_mermaid()
    inside = mermaid.split("subgraph native0[Native stage 0]\n")[1].split("    end")[0]
    assert "[large]" in inside and "[totals-repartition-sink]" in inside
    assert mermaid.count("[large]") == 1 and mermaid.count("subgraph") == mermaid.count("end\n")
    tree = ElementTree.fromstring(native().describe_as_svg())
    boxes = [each for each in tree.iter() if each.get("class") == "node native"]
    assert len(boxes) == 7
    assert {"native stage 0: amount > 100", "native stage 1: sum(amount) AS total"} <= {box[0].text for box in boxes}
    merged = three_uses()
    assert "class topic_counts-repartition merged".replace("-", "_") in merged.describe_as_mermaid()
    (shared,) = [
        box for box in ElementTree.fromstring(merged.describe_as_svg()).iter() if box.get("class") == "topic merged"
    ]
    assert str(shared[0].text).startswith("one topic for KSTREAM-AGGREGATE-")
