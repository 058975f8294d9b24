"""What is said of batches, from Spark's own report to a line on the terminal."""

from __future__ import annotations

import io
import json
from dataclasses import replace

from ottla.spark.pipeline.home import Status
from ottla.spark.pipeline.progress import BatchFigures, figures
from ottla.spark.pipeline.reporting import JsonLines, LiveLine, live_line, short, short_bytes

PROGRESS = {
    "batchId": 7,
    "numInputRows": 100,
    "inputRowsPerSecond": 2500.4,
    "durationMs": {"triggerExecution": 180, "addBatch": 90},
    "sources": [
        {"endOffset": '{"orders":{"0":10,"1":20}}', "latestOffset": '{"orders":{"0":15,"1":20}}'},
        {"endOffset": {"others": {"0": 1}}, "latestOffset": {"others": {"0": 3}}},
    ],
    "stateOperators": [{"numRowsDroppedByWatermark": 2}, {"numRowsDroppedByWatermark": 1}],
    "observedMetrics": {"ottla_in_1": {"rows": 50, "bytes": 4_200}, "ottla_out": {"rows": 48, "dead_letters": 3}},
}
BATCH = BatchFigures(7, True, 50, 45, 3, 3, 7, 1250.2, 180, 4_200)


def test_a_report_of_spark_is_reduced_to_what_matters() -> None:
    assert figures(PROGRESS) == BATCH


def test_what_spark_does_not_say_is_not_made_up() -> None:
    sparse = {"batchId": 0, "inputRowsPerSecond": "NaN", "sources": [{"endOffset": "x", "latestOffset": None}]}
    assert figures(sparse) == BatchFigures(0, False, 0, 0, 0, 0, None, 0.0, 0)


def test_the_live_line_has_rate_rows_lag_and_time() -> None:
    status = Status("orders", rows_out=12_345)
    assert live_line(status, BATCH) == "orders  batch 7  in 1.3k/s  out 12,345  lag 7  180 ms"
    behind = replace(status, dead_letters=3, late_rows=1_200)
    assert live_line(behind, BATCH).endswith("  180 ms  dead letters 3  late 1,200")


def test_a_backlog_is_shown_as_what_is_done_of_all() -> None:
    behind = replace(BATCH, lag=18_600_000, rows_in=2_000_000)
    status = Status("orders", rows_in=12_400_000, rows_out=12_000_000, bytes_in=410_000_000)
    assert live_line(status, behind) == (
        "orders  batch 7  in 1.3k/s  out 12,000,000  12.4M of 31.0M records, 410.0 MB  180 ms"
    )
    assert "lag 1,999,999" in live_line(status, replace(behind, lag=1_999_999))
    assert [short_bytes(size) for size in (0, 999, 12_345, 2_500_000_000)] == ["0 B", "999 B", "12.3 kB", "2.5 GB"]


def test_the_live_line_is_rewritten_and_gives_way_to_sentences() -> None:
    out = io.StringIO()
    line = LiveLine(out)
    line.batch(Status("orders"), BATCH)
    line.batch(Status("orders"), BATCH)
    line.event("stopped", "orders: stopped.")
    assert out.getvalue().count("\r\x1b[2K") == 2
    assert out.getvalue().endswith("\r\x1b[2Korders: stopped.\n")


def test_without_a_terminal_every_event_is_one_json_object() -> None:
    out = io.StringIO()
    lines = JsonLines(out, "orders")
    lines.event("restarting", "a sentence.", pause_s=2)
    lines.batch(Status("orders"), BATCH)
    first, second = map(json.loads, out.getvalue().splitlines())
    assert (first["pipeline"], first["event"], first["message"], first["pause_s"]) == (
        "orders",
        "restarting",
        "a sentence.",
        2,
    )
    assert (second["event"], second["batch"], second["rows_out"], second["lag"]) == ("batch", 7, 45, 7)
    assert second["late_rows"] == 3
    assert second["bytes_in"] == 4_200
    assert second["time"].endswith("Z")


def test_rates_are_short() -> None:
    assert [short(one) for one in (0, 999, 12_345, 2_500_000)] == ["0", "999", "12.3k", "2.5M"]
