"""A time line as SVG: a lane for each topic, a dot for each record, a line from what it was made of or follows. PURE.

Records stand side by side in order of time, with the time between them written on: to scale, a story of milliseconds
that ends with a delivery a day later would be two dots. Colours are CSS classes (`ottla-trace`, `lane`, `hop`, `start`,
`aborted`, `open`, `link`, `exact`, `label`, `time`, `unread`), which a page defines, or `style=True` brings along for
light and dark. Everything that comes from records is text.
"""

from __future__ import annotations

from datetime import UTC, datetime
from html import escape

from ottla.tracing.model import COMMITTED, READ, Hop, Position, Trace

HOPS_MAX = 60
_GROUPS_MAX = 20
_LEFT, _TOP, _LANE, _STEP, _RADIUS = 190, 44, 76, 120, 9
_LABEL_MAX = 22
STYLE = """
.ottla-trace { font: 12px system-ui, sans-serif; --ink: #1f2328; --faint: #d0d7de; --mark: #0969da; --bad: #cf222e; }
@media (prefers-color-scheme: dark) {
  .ottla-trace { --ink: #e6edf3; --faint: #3d444d; --mark: #4493f8; --bad: #f85149; }
}
.ottla-trace text { fill: var(--ink); }
.ottla-trace .time { opacity: 0.7; font-size: 11px; }
.ottla-trace .lane { stroke: var(--faint); }
.ottla-trace .link { stroke: var(--ink); stroke-dasharray: 4 3; fill: none; }
.ottla-trace .link.exact { stroke: var(--mark); stroke-dasharray: none; }
.ottla-trace .hop { fill: var(--mark); }
.ottla-trace .hop.start { stroke: var(--ink); stroke-width: 3; }
.ottla-trace .hop.aborted, .ottla-trace .hop.open { fill: none; stroke: var(--bad); stroke-width: 2; }
.ottla-trace .unread { fill: var(--bad); }
"""


def render_svg(trace: Trace, *, style: bool = False) -> str:
    """`style`: for a file that stands alone."""
    hops = _drawn(trace)
    topics = list(dict.fromkeys(hop.position.topic for hop in hops))
    lanes = {topic: _TOP + _LANE * number for number, topic in enumerate(topics)}
    places = {hop.position: (_LEFT + _STEP * number, lanes[hop.position.topic]) for number, hop in enumerate(hops)}
    width = _LEFT + _STEP * max(1, len(hops))
    height = _TOP + _LANE * max(1, len(topics)) + 16
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="ottla-trace" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img">',
        f"<title>{_text(f'The path of {trace.start}')}</title>",
        *([f"<style>{STYLE}</style>"] if style else []),
    ]
    for topic, y in lanes.items():
        parts.append(f'<line class="lane" x1="{_LEFT - 20}" x2="{width}" y1="{y}" y2="{y}"/>')
        parts.append(f'<text class="label" x="8" y="{y + 4}">{_text(_short(topic))}</text>')
    for before, hop in zip((None, *hops), hops, strict=False):
        parts += _link(hop, before, places)
    for hop in hops:
        parts += _dot(hop, *places[hop.position], is_start=hop.position == trace.start)
    if len(trace.hops) > len(hops):
        more = f"and {len(trace.hops) - len(hops):,} more"
        parts.append(f'<text class="label" x="8" y="{height - 8}">{more}</text>')
    return "".join([*parts, "</svg>"])


def _drawn(trace: Trace) -> tuple[Hop, ...]:
    """Not more than fit; the record that was picked is among them."""
    at = next((number for number, hop in enumerate(trace.hops) if hop.position == trace.start), 0)
    first = 0 if at < HOPS_MAX else at - HOPS_MAX // 2
    return trace.hops[first : first + HOPS_MAX]


def _link(hop: Hop, before: Hop | None, places: dict[Position, tuple[int, int]]) -> list[str]:
    is_exact = hop.parent in places
    if is_exact:
        assert hop.parent is not None
        x0, y0 = places[hop.parent]
    elif before is not None:
        x0, y0 = places[before.position]
    else:
        return []
    x1, y1 = places[hop.position]
    bend = (x0 + x1) // 2
    kind = "link exact" if is_exact else "link"
    return [f'<path class="{kind}" d="M{x0} {y0}C{bend} {y0} {bend} {y1} {x1} {y1}"/>']


def _dot(hop: Hop, x: int, y: int, *, is_start: bool) -> list[str]:
    kinds = ["hop", *(["start"] if is_start else []), *([hop.status] if hop.status != COMMITTED else [])]
    told = [str(hop.position), _moment(hop.timestamp_ms), f"found by {hop.found_by}"]
    told += [f"written by {hop.writer}"] if hop.writer else []
    told += [f"{group.group}: {group.verdict}" for group in hop.groups[:_GROUPS_MAX]]
    told += [f"and {len(hop.groups) - _GROUPS_MAX:,} more groups"] if len(hop.groups) > _GROUPS_MAX else []
    parts = [
        f'<g><title>{_text(chr(10).join(told))}</title><circle class="{" ".join(kinds)}" cx="{x}" cy="{y}" '
        f'r="{_RADIUS}"/></g>',
        f'<text class="time" x="{x}" y="{y + 26}" text-anchor="middle">'
        f"{_text(f'{hop.position.partition}@{hop.position.offset}')}</text>",
    ]
    if hop.latency_ms is not None:
        told_ms = _text(duration_text(hop.latency_ms))
        parts.append(f'<text class="time" x="{x}" y="{y + 40}" text-anchor="middle">{told_ms}</text>')
    unread = sum(group.verdict != READ for group in hop.groups)
    if unread:
        parts.append(f'<text class="unread time" x="{x}" y="{y - 16}" text-anchor="middle">{unread} unread</text>')
    return parts


def _moment(at_ms: int) -> str:
    """Producers may write any number: one that is no time stays a number."""
    try:
        return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError, OSError):
        return f"{at_ms} ms"


def duration_text(ms: int) -> str:
    sign = "-" if ms < 0 else "+"
    for size, unit in ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s")):
        if abs(ms) >= size:
            return f"{sign}{abs(ms) / size:.1f} {unit}".replace(".0 ", " ")
    return f"{sign}{abs(ms)} ms"


def _short(text: str) -> str:
    return text if len(text) <= _LABEL_MAX else text[: _LABEL_MAX - 1] + "…"


def _text(text: str) -> str:
    """XML has no room for control characters, not even escaped."""
    return escape("".join(char if char.isprintable() or char == "\n" else "\N{REPLACEMENT CHARACTER}" for char in text))
