"""The run on paper: a table for the terminal, Markdown for docs/performance.md, JSON for a machine."""

from __future__ import annotations

import json
import os
import platform
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench import loadgen
from bench.measure import Result, Summary

RESULTS = Path(__file__).resolve().parent / "results"
OTHERS_CORES_MAX = 0.15
HEADINGS = ("line", "metric", "baseline", "subject", "best", "median", "rounds", "goal")


def _figure(summary: Summary, arm: str) -> str:
    values = summary.values.get(arm)
    if not values:
        return "-"
    digits = summary.metric.digits
    return f"{statistics.median(values):,.{digits}f} ({summary.metric.best(values):,.{digits}f})"


def rows(results: Sequence[Result]) -> list[tuple[str, ...]]:
    """One row for each metric: medians with the best in brackets, then ratios (more than 1: the subject is ahead)."""
    table: list[tuple[str, ...]] = []
    for result in results:
        if result.failure is not None:
            table.append((result.title, f"FAILED: {result.failure}", "", "", "", "", "", ""))
        for summary in result.summaries:
            baseline, subject = result.arms[0], result.arms[-1]
            both = len(result.arms) == 2
            low, high = summary.ratio_range or (0.0, 0.0)
            goal = f"{summary.metric.goal:.2f}" if summary.metric.goal is not None else ""
            mark = {True: " ok", False: " BELOW", None: ""}[summary.reached]
            table.append(
                (
                    result.title,
                    f"{summary.metric.name}, {summary.metric.unit}",
                    f"{_figure(summary, baseline)} {baseline}" if both else "-",
                    f"{_figure(summary, subject)} {subject}",
                    f"{summary.best_ratio:.2f}" if both else "-",
                    f"{summary.median_ratio:.2f}" if both else "-",
                    f"{low:.2f}-{high:.2f}" if both else "-",
                    goal + mark if both else "-",
                )
            )
    return table


def table(headings: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Lines of columns; a first cell that repeats the one above is left out."""
    everything = [headings, *rows]
    failed = [row for row in rows if row[1].startswith("FAILED")]
    widths = [max(len(row[column]) for row in everything if row not in failed) for column in range(len(headings))]
    lines, before = [], ""
    for row in everything:
        shown = ("" if row[0] == before else row[0], *row[1:])
        before = row[0]
        lines.append("  ".join(cell.ljust(width) for cell, width in zip(shown, widths, strict=True)).rstrip())
    return lines


def text(results: Sequence[Result]) -> str:
    lines = table(HEADINGS, rows(results))
    lines += [
        "",
        "Figures are the median (best) of the rounds. Ratios above 1 are good for the subject; `best` compares",
    ]
    lines += ["the best rounds, `median` the medians, `rounds` is the lowest and highest ratio within one round."]
    if disturbed := disturbances(results):
        lines += ["", disturbed]
    return "\n".join(lines)


def disturbances(results: Sequence[Result]) -> str:
    """A warning when other processes were at work: a broker that is starved of CPU loses for no fault of its own."""
    busy = [one for one in results if one.others_cores > OTHERS_CORES_MAX]
    if not busy:
        return ""
    most = max(one.others_cores for one in busy)
    names = ", ".join(one.name for one in busy)
    return f"NOT A FAIR MEASUREMENT: other processes used up to {most:.1f} cores meanwhile, in: {names}."


def markdown(results: Sequence[Result]) -> str:
    lines = [f"Measured {machine()['date']} on {machine()['cpu']}, {machine()['cores']} cores, {machine()['kernel']};"]
    lines += [f"load generator: {loadgen.describe()}. Medians with the best in brackets.", ""]
    lines += ["| line | metric | baseline | subject | ratio of best | of medians | of single rounds |"]
    lines += ["|---|---|---|---|---|---|---|"]
    lines += ["| " + " | ".join(row[:7]) + " |" for row in rows(results)]
    if disturbed := disturbances(results):
        lines += ["", disturbed]
    return "\n".join(lines)


def machine() -> dict[str, Any]:
    names = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if "model name" in line
    ]
    return {
        "date": time.strftime("%Y-%m-%d"),
        "cpu": names[0] if names else platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "kernel": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
    }


def write_json(results: Sequence[Result], options: dict[str, Any]) -> Path:
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{time.strftime('%Y%m%d-%H%M%S')}.json"
    content = {
        "machine": machine(),
        "loadgen": loadgen.describe(),
        "options": options,
        "lines": [_as_json(result) for result in results],
    }
    path.write_text(json.dumps(content, indent=1))
    return path


def _as_json(result: Result) -> dict[str, Any]:
    return {
        "name": result.name,
        "title": result.title,
        "failure": result.failure,
        "notes": result.notes,
        "others_cores": round(result.others_cores, 2),
        "metrics": [
            {
                "name": one.metric.name,
                "unit": one.metric.unit,
                "higher_is_better": one.metric.higher_is_better,
                "goal": one.metric.goal,
                "reached": one.reached,
                "values": one.values,
                "best_ratio": one.best_ratio,
                "median_ratio": one.median_ratio,
                "ratio_range": one.ratio_range,
                "ratios": one.ratios,
            }
            for one in result.summaries
        ],
    }
