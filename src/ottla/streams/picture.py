"""A topology as an SVG picture that needs nothing but a browser.

Each sub-topology has a column, so that frames never overlap: topics that it reads above its frame, below it those that
only it writes. Within a frame a node stands below all its parents, and stores beside the first node that uses them. A
column begins below those that write to what it reads; a topic through which an application feeds itself ends that.
Nodes that Spark runs on columns have a colour of their own and show their expression under the pointer; a repartition
topic that several operators share has a thick edge.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

from ottla.streams.describing import native_text, shared_topic
from ottla.streams.native import native_stages
from ottla.streams.topology import ProcessorNode, SinkNode, SourceNode, SubTopology, Topology

CHOSEN = "chosen by record"
_CHARACTER_WIDTH, _BOX_HEIGHT, _ROW_HEIGHT = 7, 30, 62
_GAP, _MARGIN = 24, 20
_STYLE = (
    "text{font:12px monospace;text-anchor:middle;dominant-baseline:central}"
    "rect,path{stroke:#445;fill:none}.frame{stroke:#99a;stroke-dasharray:5 4}.title{fill:#667}"
    ".node{fill:#e8f0fe}.topic{fill:#fff3d6}.store{fill:#e3f5e6}.uses{stroke-dasharray:2 3}"
    ".native{fill:#cdeccf;stroke:#063}.merged{stroke-width:3}"
)
# (kind, name): topics and nodes may have the same names.
_Place = tuple[str, str]


@dataclass
class _Column:
    sub: SubTopology
    # From top to bottom; the first row has topics that are read, the last those that are written.
    rows: list[list[_Place]]
    first_row: int = 0
    left: int = 0
    width: int = 0


@dataclass
class _Box:
    left: int
    top: int
    width: int

    @property
    def middle(self) -> int:
        return self.left + self.width // 2

    @property
    def centre(self) -> int:
        return self.top + _BOX_HEIGHT // 2

    @property
    def bottom(self) -> int:
        return self.top + _BOX_HEIGHT


def as_svg(topology: Topology) -> str:
    return _Picture(topology).drawn()


@dataclass
class _Picture:
    topology: Topology
    columns: list[_Column] = field(default_factory=list)
    boxes: dict[_Place, _Box] = field(default_factory=dict)

    def __post_init__(self) -> None:
        read: dict[str, int] = {}
        written: dict[str, list[int]] = {}
        subs = self.topology.sub_topologies()
        for sub in subs:
            read |= dict.fromkeys(self._read(sub), sub.number)
            for topic in self._written(sub):
                written.setdefault(topic, []).append(sub.number)
        for sub in subs:
            ends = [topic for topic in self._written(sub) if topic not in read and written[topic][0] == sub.number]
            above = [("topic", topic) for topic in self._read(sub)]
            self.columns.append(_Column(sub, [above, *self._layers(sub), [("topic", topic) for topic in ends]]))
        self._shift_down(read, written)
        self._put()

    def _read(self, sub: SubTopology) -> list[str]:
        sources = [self.topology.nodes[name] for name in sub.sources]
        return [topic for node in sources if isinstance(node, SourceNode) for topic in node.topics]

    def _written(self, sub: SubTopology) -> list[str]:
        return list(dict.fromkeys(self._target(name) for name in sub.sinks))

    def _target(self, sink: str) -> str:
        node = self.topology.nodes[sink]
        assert isinstance(node, SinkNode)
        return node.topic if isinstance(node.topic, str) else CHOSEN

    def _layers(self, sub: SubTopology) -> list[list[_Place]]:
        """Nodes come after their parents in a topology, so one walk finds how deep each is."""
        depth: dict[str, int] = {}
        layers: list[list[_Place]] = []
        global_stores = {source: store for store, source in self.topology.global_stores.items()}
        shown: set[str] = set(self.topology.global_stores)
        for name in sub.nodes:
            node = self.topology.nodes[name]
            level = depth[name] = max((depth[parent] + 1 for parent in node.parents), default=0)
            layers += [[] for _ in range(level + 1 - len(layers))]
            layers[level].append(("node", name))
            if name in global_stores:
                layers[level].append(("store", global_stores[name]))
            for store in node.stores if isinstance(node, ProcessorNode) else ():
                if store not in shown:
                    shown.add(store)
                    layers[level].append(("store", store))
        return layers

    def _shift_down(self, read: dict[str, int], written: dict[str, list[int]]) -> None:
        writers: dict[int, set[int]] = {column.sub.number: set() for column in self.columns}
        for topic, number in read.items():
            writers[number] |= set(written.get(topic, ()))
        by_number = {column.sub.number: column for column in self.columns}
        done: dict[int, int] = {}

        def first_row(number: int, on_the_way: frozenset[int]) -> int:
            if number not in done:
                above = [
                    first_row(writer, on_the_way | {number}) + len(by_number[writer].rows) - 1
                    for writer in sorted(writers[number] - on_the_way - {number})
                ]
                done[number] = max(above, default=0)
            return done[number]

        for column in self.columns:
            column.first_row = first_row(column.sub.number, frozenset())

    def _put(self) -> None:
        left = _MARGIN
        for column in self.columns:
            widths = [sum(_width(name) + _GAP for _, name in row) - _GAP for row in column.rows if row]
            column.left, column.width = left, max([_width(_title(column.sub)), *widths]) + 2 * _GAP
            for number, row in enumerate(column.rows):
                taken = sum(_width(name) + _GAP for _, name in row) - _GAP
                at = left + (column.width - taken) // 2
                for place in row:
                    top = _MARGIN + (column.first_row + number) * _ROW_HEIGHT
                    self.boxes[place] = _Box(at, top, _width(place[1]))
                    at += _width(place[1]) + _GAP
            left += column.width + _GAP

    # --- drawing

    def drawn(self) -> str:
        last = max((column.first_row + len(column.rows) for column in self.columns), default=0)
        width = max((column.left + column.width for column in self.columns), default=0) + _MARGIN
        height = 2 * _MARGIN + last * _ROW_HEIGHT
        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}">',
            f"<style>{_STYLE}</style>",
            '<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" '
            'orient="auto"><path d="M0 0L8 4L0 8" /></marker></defs>',
        ]
        for column in self.columns:
            lines += _frame(column)
        lines += self._lines()
        optimised = self._optimised()
        for (kind, name), box in self.boxes.items():
            round_by = {"node": 4, "topic": 0, "store": _BOX_HEIGHT // 2}[kind]
            more, told = optimised.get((kind, name), ("", ""))
            title = f"<title>{escape(told)}</title>" if told else ""
            lines.append(
                f'<rect class="{kind}{more}" x="{box.left}" y="{box.top}" width="{box.width}" height="{_BOX_HEIGHT}" '
                + (f'rx="{round_by}">{title}</rect>' if title else f'rx="{round_by}" />')
            )
            lines.append(f'<text x="{box.middle}" y="{box.centre}">{escape(name)}</text>')
        return "\n".join([*lines, "</svg>", ""])

    def _optimised(self) -> dict[_Place, tuple[str, str]]:
        """Classes of boxes and what they tell."""
        topology = self.topology
        found: dict[_Place, tuple[str, str]] = {}
        for number, stage in enumerate(native_stages(topology).values()):
            for name in stage.all_nodes:
                text = native_text(topology, name)
                told = f"native stage {number}{': ' + text if text else ''}"
                found["node", name] = (" native", told)
        for source in topology.shared_sources:
            topic = shared_topic(topology, source)
            found["topic", topic] = (" merged", f"one topic for {', '.join(topology.nodes[source].children)}")
        return found

    def _lines(self) -> Iterator[str]:
        boxes = self.boxes
        for name, node in self.topology.nodes.items():
            here = boxes["node", name]
            for child in node.children:
                yield _arrow(here, boxes["node", child])
            if isinstance(node, SourceNode):
                for topic in node.topics:
                    yield _arrow(boxes["topic", topic], here)
            if isinstance(node, SinkNode):
                yield _arrow(here, boxes["topic", self._target(name)])
            for store in node.stores if isinstance(node, ProcessorNode) else ():
                there = boxes["store", store]
                start, end = (here, there) if here.left < there.left else (there, here)
                line = f"M{start.left + start.width} {start.centre}L{end.left} {end.centre}"
                yield f'<path class="uses" d="{line}" />'


def _title(sub: SubTopology) -> str:
    return f"Sub-topology {sub.number}"


def _width(text: str) -> int:
    return len(text) * _CHARACTER_WIDTH + 24


def _frame(column: _Column) -> Iterator[str]:
    top = _MARGIN + (column.first_row + 1) * _ROW_HEIGHT - 18
    height = (len(column.rows) - 2) * _ROW_HEIGHT - _ROW_HEIGHT + _BOX_HEIGHT + 28
    yield f'<rect class="frame" x="{column.left}" y="{top}" width="{column.width}" height="{height}" />'
    middle = column.left + _width(_title(column.sub)) // 2
    yield f'<text class="title" x="{middle}" y="{top + 8}">{_title(column.sub)}</text>'


def _arrow(start: _Box, end: _Box) -> str:
    bend = _ROW_HEIGHT // 3
    curve = f"C{start.middle} {start.bottom + bend} {end.middle} {end.top - bend} {end.middle} {end.top}"
    return f'<path d="M{start.middle} {start.bottom}{curve}" marker-end="url(#arrow)" />'
