"""`ottla trace watch FILE`: a business process, watched."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ottla.cli.given import GivenPath
from ottla.cli.listen_address import ListenAddress
from ottla.cli.output import coloured, facts, human_bytes, human_ms, notice, plural, show, table
from ottla.cli.settings import Settings, at_least, command
from ottla.cli.trace.extra import needs_trace
from ottla.cli.trace.interrupting import Interruptible
from ottla.cli.trace.record import client_of, shown, time_ms
from ottla.cli.txn.show import utc
from ottla.cli.watch import HOME_AND_CLEAR
from ottla.common.errors import OttlaError
from ottla.exposition.address import parse_address

if TYPE_CHECKING:
    from ottla.tracing.process import Case, ProcessReport, ProcessWatch
    from ottla.tracing.process.serving import ReportServer

EXIT_TROUBLE = 3
_SHOWN_MAX = 50
_PIECE_S = 0.1


@command("watch")
@click.argument("file", type=GivenPath(dir_okay=False))
@click.option("--once", is_flag=True, help="Read all there is now, report, and end: 0 if all is well, 3 if not.")
@click.option("--since", metavar="TIME", help="Only what began then or later: 2026-01-31T12:00, -2h [all there is].")
@click.option("--interval", type=at_least(0.1), default=5.0, metavar="SECONDS", help="Between two looks [5].")
@click.option("--listen", type=ListenAddress(), help="Serve the report as JSON, and at /metrics for Prometheus.")
@click.option("--cases", type=at_least(0), default=_SHOWN_MAX, help="List no more than that, the newest [50].")
def watch(
    settings: Settings, file: Path, once: bool, since: str | None, interval: float, listen: str | None, cases: int
) -> None:
    """Watch a business process: which of its instances are stuck, incomplete, late, out of order or doubled.

    FILE says in TOML which steps are expected, in which topics, in which order and within which times; docs/tracing.md
    has an example. The watch goes on where it ended: it commits offsets to a group of its own, `ottla-process-NAME`
    unless the file says otherwise. With --once nothing is committed.
    """
    with needs_trace():
        from ottla.tracing.process import ProcessWatch, load_process
    process = load_process(file)
    if once and listen:
        raise click.UsageError("--once reports and ends: leave --listen out.")
    with Interruptible() as interrupted, ExitStack() as stack:
        server = None if listen is None else stack.enter_context(_served(listen))
        if server is not None:
            notice(f"ready {server.url}")
        watched = ProcessWatch(
            client_of(settings),
            process,
            since_ms=time_ms(since, "--since") or 0,
            is_resumable=not once,
            is_cancelled=interrupted.is_set,
        )
        stack.callback(watched.close)
        report: ProcessReport | None = None
        while True:
            report = _round(watched, is_forgiving=not once)
            if report is not None:
                _show(settings, report, watched, cases, in_place=not once)
                if once:
                    break
                if server is not None:
                    server.publish(report)
            _pause(interval, interrupted)
            if interrupted.is_set():
                break
    status = interrupted.status if interrupted.is_set() else EXIT_TROUBLE if once and not _is_well(report) else 0
    click.get_current_context().exit(status)


def _is_well(report: ProcessReport | None) -> bool:
    return report is not None and report.is_well


def _round(watched: ProcessWatch, *, is_forgiving: bool) -> ProcessReport | None:
    """A watch outlives a cluster that is away for a while, once it has met it."""
    try:
        return watched.round()
    except OttlaError as error:
        if not is_forgiving or not watched.records:
            raise
        notice(f"ottla: {error} Trying again.", colour="yellow")
        return None


def _pause(interval_s: float, interrupted: Interruptible) -> None:
    until_s = time.monotonic() + interval_s
    while not interrupted.is_set() and time.monotonic() < until_s:
        time.sleep(min(_PIECE_S, interval_s))


def _served(listen: str) -> ReportServer:
    with needs_trace():
        from ottla.tracing.process.serving import ReportServer
    return ReportServer(*parse_address(listen, what="--listen"))


# -- for people ----------------------------------------------------------------------------------------------------


def _show(settings: Settings, report: ProcessReport, watched: ProcessWatch, cases: int, *, in_place: bool) -> None:
    if in_place and settings.output == "table" and coloured(sys.stdout):
        sys.stdout.write(HOME_AND_CLEAR)
    data = {
        **report.as_json(),
        "read": {"records": watched.records, "bytes": watched.bytes},
        "problems": list(watched.problems),
    }
    show(settings, data, lambda: _lines(report, watched, cases))
    sys.stdout.flush()


def _lines(report: ProcessReport, watched: ProcessWatch, cases: int) -> Iterator[str]:
    told = [f"{count:,} {name}" for name, count in report.counts.items() if count]
    read = f"{plural(watched.records, 'record')}, {human_bytes(watched.bytes)}, up to {utc(report.as_of_ms)}"
    yield from facts([("process", report.name), ("counted", ", ".join(told) or "nothing yet"), ("read", read)])
    for step, count in report.without_id.items():
        yield f"note: {plural(count, 'record')} of step '{step}' had no id."
    for problem in watched.problems:
        yield f"note: {problem}"
    chosen = report.cases[-cases:] if cases else ()
    if chosen:
        yield ""
        headings = ["ID", "PROBLEM", "BEGAN", "WAITS FOR", "OVERDUE", *(step.name.upper() for step in chosen[0].steps)]
        yield from table(headings, [_row(case) for case in chosen])
    if len(chosen) < len(report.cases):
        yield f"and {len(report.cases) - len(chosen):,} older ones: --cases shows more, --output json all."


def _row(case: Case) -> list[str | int | None]:
    from ottla.tracing import Preview

    overdue = human_ms(case.overdue_ms) if case.overdue_ms > 0 else None
    steps = [_step(case, number) for number in range(len(case.steps))]
    name = shown(Preview(case.id, len(case.id)))
    return [name, ", ".join(case.problems), utc(case.first_ms), case.waiting_for, overdue, *steps]


def _step(case: Case, number: int) -> str | None:
    step = case.steps[number]
    if step.timestamp_ms is None or step.position is None:
        return None
    told = "" if step.count == 1 else f" x{step.count}"
    return f"+{human_ms(step.timestamp_ms - case.first_ms)} ({step.position.partition}@{step.position.offset}){told}"
