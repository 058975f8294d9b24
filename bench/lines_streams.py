"""Ottla Streams beside Kafka Streams and quix-streams: `streams_programs.py` says what they run, `streams_engines.py`
how it is measured.

`streams-words`, `streams-windows`: against Kafka Streams as it comes, with its cache, which lets the last of several
updates of a key through; `-each`: without the cache, so that both write every update. `streams-native`: SQL
expressions, which run on columns. `streams-quix-*`: against quix-streams. `streams-latency-N`: from a record's
creation to the arrival of its result, at N records a second. `streams-state`, `streams-state-kafka`: what a record
costs with a million keys, beside ten thousand, in either.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import cache, partial

from bench.contenders import Contender
from bench.lines_spark import require_spark
from bench.lines_spark_sink import LATENCY_WARM_UP_S, Arrivals, percentiles, send
from bench.measure import Arm, Comparison, Metric, Values, cost, throughput
from bench.streams_engines import Engine, Job, KafkaStreams, OttlaStreams, Processes, QuixStreams
from bench.streams_programs import LATEST, NATIVE_COUNT, PARTITIONS, WINDOWED_COUNT, WORD_COUNT, Program, counts_of

# Before the measured burst of a round, so that what was started is ready; and before the first round.
READY_RECORDS = 2_000
WARM_UPS = 2
# Besides: what is measured are applications that run for long, and what happens once for each batch is compiled after
# some of them.
SMALL_BURSTS = 8
FEW, MANY = 10_000, 1_000_000
QUIX_SHARE = 0.25  # it takes several times as long
LATENCY_RATES = (1, 100, 1_000)
Enter = Callable[..., object]


_on_stage: list[Processes] = []


def _take_the_stage(engine: Processes, enter: Enter) -> None:
    """What earlier lines have left running ends."""
    while _on_stage:
        _on_stage.pop().close()
    _on_stage.append(engine)
    enter(contextlib.closing(engine))


@cache
def _job(contender: Contender, program: Program, engine: Engine) -> Job:
    return Job(contender, program, engine)


def _learn(contender: Contender, program: Program, engine: Engine) -> None:
    job = _job(contender, program, engine)
    with engine.running(job):
        for _ in range(SMALL_BURSTS):
            job.burst(READY_RECORDS)


def _counted(contender: Contender, program: Program, engine: Engine, share: float) -> Values:
    job = _job(contender, program, engine)
    records = max(READY_RECORDS, int(program.records * contender.scale.client_share * share))
    with engine.running(job):
        job.burst(READY_RECORDS)
        seconds = job.burst(records)
    return {"counted": records / seconds / 1e3, "each": seconds / records * 1e6}


def _arm(
    label: str, measure: Callable[[], Values], warm_ups: int = WARM_UPS, learn: Callable[[], None] | None = None
) -> Arm:
    def warm_up() -> None:
        for _ in range(warm_ups):
            measure()
        if learn is not None:
            learn()

    return Arm(label, measure, warm_up)


def _metrics(unit: str, goal: float | None) -> list[Metric]:
    return [throughput("counted", f"k {unit}/s", goal=goal), cost("each", f"µs for one of the {unit}", digits=1)]


def _require(reason: str | None) -> None:
    require_spark()
    if reason is not None:
        raise RuntimeError(reason)


UNITS = {WORD_COUNT.name: "lines", WINDOWED_COUNT.name: "records", NATIVE_COUNT.name: "rows"}
# What is asked of Ottla, as a share of what Kafka Streams does: of functions of Python, and of SQL expressions.
GOALS = {WORD_COUNT.name: 0.5, WINDOWED_COUNT.name: 0.5, NATIVE_COUNT.name: 2.0}
TITLES = {
    WORD_COUNT.name: "word count, lines of three words",
    WINDOWED_COUNT.name: "count in windows of 10 s",
    NATIVE_COUNT.name: "filter and count of JSON rows by key, in SQL expressions",
}


def kafka_line(contender: Contender, enter: Enter, program: Program, *, emits_each: bool = False) -> Comparison:
    _require(KafkaStreams.why_not())
    theirs = KafkaStreams(cache_bytes=0 if emits_each else None)
    _take_the_stage(theirs, enter)
    return Comparison(
        f"streams-{program.name}" + ("-each" if emits_each else ""),
        f"{TITLES[program.name]}, exactly once" + (", every update written" if emits_each else ""),
        _metrics(UNITS[program.name], None if emits_each else GOALS[program.name]),
        [
            _arm(
                engine.label,
                partial(_counted, contender, program, engine, 1.0),
                learn=partial(_learn, contender, program, engine),
            )
            for engine in (theirs, OttlaStreams())
        ],
    )


def quix_line(contender: Contender, enter: Enter, program: Program) -> Comparison:
    _require(QuixStreams.why_not())
    theirs = QuixStreams()
    _take_the_stage(theirs, enter)
    return Comparison(
        f"streams-quix-{program.name}",
        f"{TITLES[program.name]}, exactly once, two processes of quix-streams",
        _metrics(UNITS[program.name], 2.0),
        [
            _arm(theirs.label, partial(_counted, contender, program, theirs, QUIX_SHARE), 1),
            _arm("ottla", partial(_counted, contender, program, OttlaStreams(), 1.0)),
        ],
    )


def state_line(contender: Contender, enter: Enter, *, of_kafka: bool = False) -> Comparison:
    """What grows with the state: its copy in memory, or RocksDB; the records of a round are as many."""
    _require(KafkaStreams.why_not() if of_kafka else None)
    engine: Engine = OttlaStreams()
    if of_kafka:
        engine = KafkaStreams()
        _take_the_stage(engine, enter)

    def arm(keys: int) -> Arm:
        program = counts_of(keys)

        def warm_up() -> None:
            job = _job(contender, program, engine)
            with engine.running(job):
                job.burst(keys)
            _counted(contender, program, engine, 1.0)

        return Arm(f"{keys:,} keys", partial(_counted, contender, program, engine, 1.0), warm_up)

    whose = "Kafka Streams" if of_kafka else "Ottla Streams"
    return Comparison(
        "streams-state" + ("-kafka" if of_kafka else ""),
        f"count by key with a large state, {whose}",
        _metrics("records", None if of_kafka else 0.5),
        [arm(FEW), arm(MANY)],
    )


def _latency(contender: Contender, engine: Engine, per_second: int) -> Values:
    job = _job(contender, LATEST, engine)
    with engine.running(job):
        # Whatever was started is ready when the first of them has come through.
        arrivals = Arrivals(job.bootstrap, job.target, PARTITIONS, from_end=True)
        send(job.bootstrap, job.source, per_second, PARTITIONS, keys=1_000)
        arrivals.stop()
    return percentiles(arrivals.after(LATENCY_WARM_UP_S), engine.label)


def latency_line(contender: Contender, enter: Enter, per_second: int) -> Comparison:
    _require(KafkaStreams.why_not())
    theirs = KafkaStreams()
    _take_the_stage(theirs, enter)
    return Comparison(
        f"streams-latency-{per_second}",
        f"latest value of a key at {per_second:,} records/s, record in to result out",
        [cost("p50", "ms", digits=0), cost("p99", "ms", digits=0)],
        [
            _arm(engine.label, partial(_latency, contender, engine, per_second), 1)
            for engine in (theirs, OttlaStreams())
        ],
    )
