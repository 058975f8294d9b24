"""`ottla trace TOPIC PARTITION OFFSET`: the path of one record."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ottla.cli.given import GivenPath
from ottla.cli.name_completion import complete_topic
from ottla.cli.output import facts, human_bytes, human_ms, notice, paint, plural, show, table
from ottla.cli.settings import INT64_MAX, Settings, at_least, command
from ottla.cli.trace.extra import needs_trace
from ottla.cli.trace.interrupting import Interruptible
from ottla.cli.txn.show import utc
from ottla.client.access.security_settings import parse_security
from ottla.client.settings import ClientSettings
from ottla.common.errors import OttlaError
from ottla.common.moments import DURATION, UNIT_MS, parse_time

if TYPE_CHECKING:
    from ottla.tracing import Budget, Hop, Preview, Trace

_SHOWN_MAX = 40
_FIRST_PROGRESS_S = 2.0
_CUT_SHORT = {
    "time": "the time is over: --seconds allows more, or --topics and --window less to search",
    "bytes": "so many bytes are read: --mb allows more, or --topics and --window less to search",
    "hops": "so many records belong to it: --hops allows more",
    "cancelled": "it was cancelled",
}
_MB = 1024 * 1024


def client_of(settings: Settings) -> ClientSettings:
    """Of librdkafka's settings those about TLS and SASL are taken."""
    client = settings.client_settings()
    return ClientSettings(client["bootstrap.servers"], client_id="ottla-trace", security=parse_security(client))


@command("record", options_metavar="[OPTIONS]")
@click.argument("topic", shell_complete=complete_topic)
@click.argument("partition", type=at_least(0))
@click.argument("offset", type=at_least(0, INT64_MAX))
@click.option(
    "--by",
    multiple=True,
    metavar="WHAT",
    help="What its records share: key, traceparent, header:NAME or json:PATH (order.id); repeatable, any of them counts"
    " [traceparent if it has one, else key]. Or only lineage.",
)
@click.option("--topics", multiple=True, metavar="PATTERN", help="Search only these (orders-*); repeatable [all].")
@click.option("--window", metavar="TIME", default="1h", help="How long before and after the record: 30s, 15m, 2d [1h].")
@click.option("--since", metavar="TIME", help="From then on instead: 2026-01-31T12:00, -2h, or epoch ms.")
@click.option("--until", metavar="TIME", help="Up to then instead; `now` too.")
@click.option("--seconds", type=at_least(0.1), default=60.0, help="Search no longer than that [60].")
@click.option("--mb", type=at_least(1), default=4096, help="Read no more than that [4096].")
@click.option("--hops", type=at_least(1), default=1000, help="Find no more records than that [1000].")
@click.option("--no-groups", is_flag=True, help="Do not ask who has read them.")
@click.option("--svg", type=GivenPath(dir_okay=False), metavar="FILE", help="Draw the time line into a file, too.")
def record(
    settings: Settings,
    topic: str,
    partition: int,
    offset: int,
    by: tuple[str, ...],
    topics: tuple[str, ...],
    window: str,
    since: str | None,
    until: str | None,
    seconds: float,
    mb: int,
    hops: int,
    no_groups: bool,
    svg: Path | None,
) -> None:
    """Show where a record came from and where it went: a time line over topics, and who has read it.

    Records belong together that share a trace id, a key, a header or a JSON field. What pipelines and topologies wrote
    with lineage on is followed exactly. Works on any Kafka cluster; Ctrl-C ends the search and shows what was found.
    """
    with needs_trace():
        from ottla.tracing import Limits, NothingToFollow, render_svg
        from ottla.tracing import trace as find
    progress = _Progress()
    with Interruptible() as interrupted:
        try:
            found = find(
                client_of(settings),
                (topic, partition, offset),
                by=by,
                topics=topics,
                window_ms=duration_ms(window, "--window"),
                since_ms=time_ms(since, "--since"),
                until_ms=time_ms(until, "--until"),
                limits=Limits(seconds_max=seconds, bytes_max=mb * _MB, hops_max=hops),
                with_readers=not no_groups,
                is_cancelled=interrupted.is_set,
                on_progress=progress,
            )
        except NothingToFollow as nothing:
            raise OttlaError(f"{nothing} Say it with --by.") from None
    progress.clear()
    if svg is not None:
        svg.write_text(render_svg(found, style=True), encoding="utf-8")
    show(settings, found.as_json(), lambda: _lines(found))
    if interrupted.is_set():
        click.get_current_context().exit(interrupted.status)


class _Progress:
    """On stderr, once it takes long: again and again in one line on a terminal, now and then elsewhere."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._is_shown = False
        self._next_s = time.monotonic() + _FIRST_PROGRESS_S

    def __call__(self, budget: Budget) -> None:
        now_s = time.monotonic()
        if now_s < self._next_s:
            return
        self._next_s = now_s + (0.5 if self._is_terminal else 10.0)
        told = f"searched {human_bytes(budget.bytes)}, {plural(budget.records, 'record')}: {budget.hops} found"
        if self._is_terminal:
            sys.stderr.write(f"\r\x1b[K{told}")
            sys.stderr.flush()
            self._is_shown = True
        else:
            notice(told)

    def clear(self) -> None:
        if self._is_shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def duration_ms(text: str, flag: str) -> int:
    parts = DURATION.findall(text)
    if not parts or "".join(f"{count}{unit}" for count, unit in parts) != text:
        raise click.UsageError(f"{flag} takes a time such as 30s, 15m, 1h or 2d, not '{text}'.")
    return sum(int(count) * UNIT_MS[unit] for count, unit in parts)


def time_ms(text: str | None, flag: str) -> int | None:
    if text is None:
        return None
    at_ms = parse_time(text.removeprefix("@"))
    if at_ms is None:
        raise click.UsageError(f"{flag} takes a time such as 2026-01-31T12:00, -2h or epoch ms, not '{text}'.")
    return at_ms


# -- for people ----------------------------------------------------------------------------------------------------


def _lines(found: Trace) -> Iterator[str]:
    looked = ", ".join(f"{by} = {shown(value)}" for by, value in found.looked_for) or "lineage"
    yield from facts(
        [("record", str(found.start)), ("by", looked), ("time", f"{utc(found.since_ms)} to {utc(found.until_ms)}")]
    )
    yield ""
    headings = ["TIME", "LATENCY", "TOPIC", "PARTITION", "OFFSET", "FOUND BY", "WRITTEN BY", "KEY", "VALUE"]
    yield from table(headings, [_hop_row(hop) for hop in found.hops])
    yield from _group_lines(found)
    yield ""
    yield from _searched_lines(found)


def _hop_row(hop: Hop) -> list[str | int | None]:
    found_by = hop.found_by if hop.status == "committed" else f"{hop.found_by} ({hop.status})"
    writer = hop.writer if hop.batch is None else f"{hop.writer} #{hop.batch}"
    where = hop.position
    latency = None if hop.latency_ms is None else f"+{human_ms(hop.latency_ms)}".replace("+-", "-")
    return [
        utc(hop.timestamp_ms),
        latency,
        where.topic,
        where.partition,
        where.offset,
        found_by,
        writer,
        shown(hop.key),
        shown(hop.value),
    ]


def shown(preview: Preview | None) -> str:
    """In one line; what is not text in hex, and its size where it does not fit."""
    if preview is None:
        return "null"
    text = preview.text
    line = "0x" + preview.start.hex() if text is None else " ".join(text.split())
    is_whole = len(line) <= _SHOWN_MAX and preview.size_bytes == len(preview.start)
    return line if is_whole else f"{line[: _SHOWN_MAX - 3]}... ({human_bytes(preview.size_bytes)})"


def _group_lines(found: Trace) -> Iterator[str]:
    rows = [
        [
            hop.position.topic,
            hop.position.partition,
            hop.position.offset,
            group.group,
            group.verdict,
            group.committed,
            group.lag_records or None,
            None if group.verdict == "read" else human_ms(round(group.lag_s * 1000)),
        ]
        for hop in found.hops
        for group in hop.groups
    ]
    if rows:
        yield ""
        headings = ["TOPIC", "PARTITION", "OFFSET", "GROUP", "HAS IT READ?", "COMMITTED", "LAG", "WAITING"]
        yield from table(headings, rows)


def _searched_lines(found: Trace) -> Iterator[str]:
    searched = (
        f"searched {plural(len(found.searched), 'topic')}, {plural(found.records, 'record')}, "
        f"{human_bytes(found.bytes)} in {found.took_s:.1f} s: {plural(len(found.hops), 'record')} of this story"
    )
    yield searched
    if found.cut_short is not None:
        yield paint(f"not all was searched: {_CUT_SHORT[found.cut_short]}.", "yellow")
    rows: list[list[str | int | None]] = []
    for topic in found.searched:
        for number, (start, reached, end) in sorted(topic.partitions.items()):
            if reached < end or topic.problem:
                rows.append([topic.topic, number, start, reached, end, topic.problem])
        if topic.problem and not topic.partitions:
            rows.append([topic.topic, None, None, None, None, topic.problem])
    if rows:
        yield from table(["TOPIC", "PARTITION", "FROM", "SEARCHED TO", "OF", "PROBLEM"], rows)
    for hop in found.hops:
        if hop.writer is not None and hop.parent is None:
            ranges = f": some of {', '.join(hop.made_of)}" if hop.made_of else ""
            yield f"{hop.position} was made of batch {hop.batch} of {hop.writer}{ranges}"
        if hop.reason is not None:
            yield paint(f"{hop.position} is a dead letter: {' '.join(hop.reason.split())}", "yellow")
    for note in found.notes:
        yield paint(f"note: {note}", "yellow")
