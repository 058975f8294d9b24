"""Topologies as pictures: everything is in an SVG once, nothing covers anything else, and arrows lead downwards."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from ottla.streams import JoinWindows, StreamsBuilder, Topology, serdes
from ottla.streams.loading import load_application
from tests.support.kafka_jars import REPO_ROOT

EXAMPLES = sorted(path for path in (REPO_ROOT / "examples" / "streams").glob("*.py") if path.stem != "showing")
_SVG = "{http://www.w3.org/2000/svg}"


def through_two_topics() -> Topology:
    """Columns side by side and below each other, a store that several nodes use, a global table, a chosen topic."""
    builder = StreamsBuilder(key=serdes.string, value=serdes.string)
    names = builder.global_table("names", store="names-store")
    words = builder.stream(["a", "b"]).select_key(lambda key, value: value, name="by-word")
    pairs = words.join(builder.stream("c"), lambda one, other: one, JoinWindows.of(5), name="pairs")
    pairs.join(names, lambda one, other: one, key_of=lambda key, value: key).to(lambda key, value, metadata: "x")
    words.group_by(lambda key, value: value[:1]).count(store="counts").to_stream().to("out")
    return builder.build()


def feeding_itself() -> Topology:
    builder = StreamsBuilder(key=serdes.string, value=serdes.string)
    builder.stream("a").to("b")
    builder.stream("b").to("a")
    return builder.build()


def boxes(svg: str, kinds: tuple[str, ...]) -> list[tuple[int, int, int, int]]:
    found = []
    for rect in ElementTree.fromstring(svg).iter(f"{_SVG}rect"):
        if rect.get("class") in kinds:
            left, top, width, height = (int(rect.get(name, "")) for name in ("x", "y", "width", "height"))
            found.append((left, top, left + width, top + height))
    return found


def overlapping(found: list[tuple[int, int, int, int]]) -> list[object]:
    pairs = itertools.combinations(found, 2)
    return [(a, b) for a, b in pairs if a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]]


def check(topology: Topology) -> str:
    svg = topology.describe_as_svg()
    root = ElementTree.fromstring(svg)
    texts = [text.text for text in root.iter(f"{_SVG}text")]
    stores = {*topology.global_stores, *(name for sub in topology.sub_topologies() for name in sub.stores)}
    for names in (topology.nodes, stores, topology.source_topics()):
        assert [name for name in names if name not in texts] == []
    assert len(boxes(svg, ("node",))) == len(topology.nodes) and len(boxes(svg, ("store",))) == len(stores)
    assert overlapping(boxes(svg, ("node", "topic", "store"))) == []
    assert overlapping(boxes(svg, ("frame",))) == []
    width, height = int(root.get("width", "")), int(root.get("height", ""))
    everything = boxes(svg, ("node", "topic", "store", "frame"))
    assert all(
        left >= 0 and top >= 0 and right <= width and bottom <= height for left, top, right, bottom in everything
    )
    return svg


def upward(svg: str) -> int:
    arrows = re.findall(r'd="M\d+ (\d+)C\d+ \d+ \d+ -?\d+ \d+ (\d+)"', svg)
    assert arrows
    return sum(int(end) <= int(start) for start, end in arrows)


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_examples_have_a_picture(file: Path) -> None:
    assert upward(check(load_application(file).topology)) == 0


def test_columns_topics_and_stores_have_places_of_their_own() -> None:
    svg = check(through_two_topics())
    assert upward(svg) == 0
    assert "chosen by record" in svg and len(boxes(svg, ("frame",))) == len(through_two_topics().sub_topologies())


def test_an_application_that_feeds_itself_has_one_arrow_upwards() -> None:
    assert upward(check(feeding_itself())) == 1


def test_nodes_of_nothing_are_an_empty_picture() -> None:
    assert boxes(Topology().describe_as_svg(), ("node", "topic", "store", "frame")) == []


def test_in_mermaid_the_store_of_a_global_table_stands_where_it_is_fed() -> None:
    first, *_ = through_two_topics().describe_as_mermaid().split("  end\n")
    assert "    store_names_store[(names-store)]" in first


def test_in_mermaid_topics_with_similar_names_are_told_apart() -> None:
    builder = StreamsBuilder(key=serdes.string, value=serdes.string)
    for name in ("a-b", "a.b", "a_b"):
        builder.stream(name).to("out")
    text = builder.build().describe_as_mermaid()
    assert len(set(re.findall(r"(topic_\w+)>a.b\]", text))) == 3
