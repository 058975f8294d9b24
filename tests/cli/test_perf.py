"""`ottla perf`: the summaries add up; no test says how fast."""

from __future__ import annotations

import pytest

from ottla.cli.perf.produce import PAYLOAD_BYTES_MAX, payloads
from tests.cli.command import Cli

PERCENTILES = ["p50", "p95", "p99", "p99_9", "max"]


def test_produce_then_consume(cli: Cli, topic: str) -> None:
    outcome = cli.ok("perf", "produce", topic, "-n", "2000", "--size", "50", "--output", "json")
    sent = outcome.data
    assert (sent["records"], sent["bytes"], sent["failures"]) == (2000, 100_000, 0)
    assert list(sent["latency_ms"]) == PERCENTILES
    assert list(sent["latency_ms"].values()) == sorted(sent["latency_ms"].values())
    assert sent["records_per_second"] > 0

    read = cli.ok("perf", "consume", topic, "--output", "json").data
    assert (read["records"], read["bytes"]) == (2000, 100_000)
    assert cli.ok("perf", "consume", topic, "-n", "10", "--output", "json").data["records"] >= 10
    assert "records/s" in cli.ok("perf", "consume", topic).out


def test_a_rate_is_kept(cli: Cli, topic: str) -> None:
    sent = cli.ok("perf", "produce", topic, "-n", "100", "--rate", "200", "--output", "json").data
    assert sent["seconds"] >= 0.45


def test_end_to_end(cli: Cli, topic: str) -> None:
    measured = cli.ok("perf", "e2e", topic, "-n", "200", "--rate", "400", "--output", "json").data
    assert measured["records"] == 200
    assert list(measured["latency_ms"]) == PERCENTILES
    assert "p99.9" in cli.ok("perf", "e2e", topic, "-n", "50", "--rate", "500").out


def test_an_unknown_topic(cli: Cli) -> None:
    for verb in ("produce", "consume", "e2e"):
        assert "there is no topic 'qqqq'" in cli.fails(1, "perf", verb, "qqqq")


@pytest.mark.parametrize("size", [1, 1000, (1 << 20) + 1, 2 * PAYLOAD_BYTES_MAX])
def test_values_are_made_at_once_however_large_a_record_is(size: int) -> None:
    made = payloads(size)
    assert {len(value) for value in made} == {size}
    assert sum(map(len, made)) <= max(size, PAYLOAD_BYTES_MAX)
    assert all(value.isalpha() for value in made)
    assert payloads(size) == made
    if size == 1000:
        assert len(set(made)) == len(made) == 64
