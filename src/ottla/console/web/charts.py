"""Charts as SVG, drawn here: no script, no library, and colours that come from the style sheet.

A chart is a line over an area with three labels at the left and times below. Gaps stay gaps: a moment without a value
is a moment at which nobody knew.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from markupsafe import Markup, escape

Points = Sequence[tuple[float, float | None]]

_WIDTH, _HEIGHT = 600, 140
_LEFT, _BOTTOM, _TOP, _RIGHT = 56, 20, 8, 6
_SPARK_WIDTH, _SPARK_HEIGHT = 96, 22
_HITS = 120


# What an axis goes by: numbers, things that are counted one by one, seconds, bytes.
_NUMBERS, _WHOLE, _SECONDS, _BYTES = 10, 1, 60, 1024
_NICE_S = tuple(
    60.0 * minutes for minutes in (1, 2, 4, 6, 10, 20, 30, 60, 120, 240, 360, 720, 1440)
)  # their halves are as easily read


def chart(points: Points, unit: Callable[[float], str], label: str, base: int = _NUMBERS) -> Markup:
    """`label` says in words what is drawn, for those who cannot see it. `base` is 1024 for bytes, 60 for seconds, 1 for
    what has no halves."""
    return lines([("", points)], unit, label, base)


def lines(
    series: Sequence[tuple[str, Points]], unit: Callable[[float], str], label: str, base: int = _NUMBERS
) -> Markup:
    """Several of the same moments in one picture, each with its name; each is drawn in another way, for those who see
    no colours."""
    known = {name: [(at, value) for at, value in points if value is not None] for name, points in series}
    values = [value for rows in known.values() for _, value in rows]
    if all(len(rows) < 2 for rows in known.values()):
        return Markup('<p class="empty small">Not enough measurements yet: a line appears after some seconds.</p>')
    top = nice_top(max(values), base)
    first, last = series[0][1][0][0], series[0][1][-1][0]
    span = max(1.0, last - first)

    def x(at: float) -> float:
        return _LEFT + (at - first) / span * (_WIDTH - _LEFT - _RIGHT)

    def y(value: float) -> float:
        return _TOP + (1 - value / top) * (_HEIGHT - _TOP - _BOTTOM)

    parts: list[str] = []
    for share in (0.0, 1.0) if base == _WHOLE and top % 2 else (0.0, 0.5, 1.0):
        height = y(top * share)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{height:.1f}" y2="{height:.1f}"/>')
        parts.append(
            f'<text x="{_LEFT - 6}" y="{height + 3.5:.1f}" text-anchor="end">{escape(unit(top * share))}</text>'
        )
    for number, (_, points) in enumerate(series):
        parts += _line(points, number, x, y, with_area=len(series) == 1)
    for at, anchor in ((first, "start"), ((first + last) / 2, "middle"), (last, "end")):
        zone = " UTC" if at == last else ""
        parts.append(f'<text x="{x(at):.1f}" y="{_HEIGHT - 5}" text-anchor="{anchor}">{_clock(at)}{zone}</text>')
    parts += _hits(known, x, unit)
    svg = (
        f'<svg class="chart" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="{escape(_in_words(known, unit, label, span))}">{"".join(parts)}</svg>'
    )
    return Markup(svg + _legend(known, unit))


def _line(
    points: Points, number: int, x: Callable[[float], float], y: Callable[[float], float], *, with_area: bool
) -> list[str]:
    parts, floor = [], y(0)
    for run in _runs(points):
        line = " ".join(f"{x(at):.1f},{y(value):.1f}" for at, value in run)
        if len(run) == 1:
            parts.append(f'<circle class="dot s{number}" cx="{x(run[0][0]):.1f}" cy="{y(run[0][1]):.1f}" r="1.5"/>')
            continue
        if with_area:
            edges = f"{x(run[0][0]):.1f},{floor:.1f} {line} {x(run[-1][0]):.1f},{floor:.1f}"
            parts.append(f'<polygon class="area" points="{edges}"/>')
        parts.append(f'<polyline class="line s{number}" points="{line}"/>')
    return parts


def _hits(
    known: Mapping[str, list[tuple[float, float]]], x: Callable[[float], float], unit: Callable[[float], str]
) -> list[str]:
    """Where somebody points at: the values of that moment."""
    moments: dict[float, list[str]] = {}
    for name, rows in known.items():
        for at, value in rows:
            moments.setdefault(at, []).append(f"{name} {unit(value)}".strip())
    shown = sorted(moments)[:: max(1, len(moments) // _HITS)]
    width = (_WIDTH - _LEFT - _RIGHT) / max(1, len(shown))
    return [
        f'<rect class="hit" x="{x(at) - width / 2:.1f}" y="{_TOP}" width="{width:.1f}" '
        f'height="{_HEIGHT - _TOP - _BOTTOM}"><title>{_clock(at)} UTC  {escape(", ".join(moments[at]))}</title></rect>'
        for at in shown
    ]


def _in_words(
    known: Mapping[str, list[tuple[float, float]]], unit: Callable[[float], str], label: str, span: float
) -> str:
    told = [
        f"{name} now {unit(rows[-1][1])}, at most {unit(max(value for _, value in rows))}".strip()
        for name, rows in known.items()
        if rows
    ]
    return f"{label}: {'; '.join(told)} in the last {minutes(span)}"


def _legend(known: Mapping[str, list[tuple[float, float]]], unit: Callable[[float], str]) -> str:
    if len(known) < 2:
        (values,) = ([value for _, value in rows] for rows in known.values())
        told = (("last", values[-1]), ("least", min(values)), ("most", max(values)))
        entries = "".join(f"<li>{what} <strong>{escape(unit(value))}</strong></li>" for what, value in told)
        return f'<ul class="legend">{entries}</ul>'
    entries = "".join(
        f'<li><svg class="key" viewBox="0 0 18 4" aria-hidden="true"><path class="line s{number}" d="M0 2h18"/></svg>'
        f"{escape(name)}{f' <strong>{escape(unit(rows[-1][1]))}</strong>' if rows else ''}</li>"
        for number, (name, rows) in enumerate(known.items())
    )
    return f'<ul class="legend">{entries}</ul>'


def _clock(at: float) -> str:
    """In UTC, as all other times of the console."""
    return time.strftime("%H:%M:%S", time.gmtime(at))


def spark(points: Points, label: str) -> Markup:
    """A line in a cell of a table."""
    known = [(at, value) for at, value in points if value is not None]
    if len(known) < 2:
        return Markup("")
    top = max(1e-9, max(value for _, value in known))
    first, span = points[0][0], max(1.0, points[-1][0] - points[0][0])
    lines = []
    for run in _runs(points):
        line = " ".join(
            f"{(at - first) / span * _SPARK_WIDTH:.1f},{_SPARK_HEIGHT - 1 - value / top * (_SPARK_HEIGHT - 3):.1f}"
            for at, value in run
        )
        lines.append(f'<polyline class="line" points="{line}"/>')
    return Markup(
        f'<svg class="spark" viewBox="0 0 {_SPARK_WIDTH} {_SPARK_HEIGHT}" role="img" aria-label="{escape(label)}">'
        f"{''.join(lines)}</svg>"
    )


def meter(share: float | None, label: str) -> Markup:
    """How full something is."""
    if share is None:
        return Markup("")
    filled = max(0.0, min(1.0, share)) * 100
    level = "bad" if share > 0.95 else "warn" if share > 0.85 else "ok"
    return Markup(
        f'<svg class="meter {level}" viewBox="0 0 100 6" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(label)}"><rect class="track" width="100" height="6" rx="3"/>'
        f'<rect class="fill" width="{filled:.1f}" height="6" rx="3"/></svg>'
    )


def nice_top(most: float, base: int = _NUMBERS) -> float:
    """The least 1, 2, 2.5 or 5 times a power of ten that is not below it; of bytes and seconds, in their own unit."""
    if most <= 0 or (base == _WHOLE and most < 1):
        return 1.0
    unit = 1.0
    steps: tuple[float, ...] = (1.0, 2.0, 2.5, 5.0, 10.0)
    if base == _SECONDS and most > 30:
        for step in _NICE_S:
            if step >= most * 0.999:
                return step
        most, unit, steps = most / _NICE_S[-1], _NICE_S[-1], (1.0, 2.0, 4.0, 10.0)
    while base == _BYTES and most >= 1024:
        most, unit = most / 1024, unit * 1024
    power = 1.0
    while power * 10 <= most:
        power *= 10
    while power > most:
        power /= 10
    return unit * next(step * power for step in steps if step * power >= most * 0.999)


def minutes(seconds: float) -> str:
    return f"{seconds / 60:.0f} minutes" if seconds >= 90 else f"{seconds:.0f} seconds"


def _runs(points: Points) -> list[list[tuple[float, float]]]:
    runs: list[list[tuple[float, float]]] = []
    current: list[tuple[float, float]] = []
    for at, value in points:
        if value is None:
            if current:
                runs.append(current)
            current = []
        else:
            current.append((at, value))
    return [*runs, current] if current else runs
