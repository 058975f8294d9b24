"""Lines driven by the raw load generator: single produces, bulk produce and fetch, end to end latency."""

from __future__ import annotations

from bench import frames
from bench.contenders import Contender, Scale, arms
from bench.measure import Comparison, Values, cost, throughput

SMALL_RECORD_BYTES = (100, 80, 110, 90, 120)
E2E_RECORD_BYTES = 100
PARTITIONS = 16
IN_FLIGHT = 5  # the Java producer's default
E2E_BATCH_RECORDS_MAX = 128


def single_produce(
    contender: Contender,
    connections: int,
    partitions: int = PARTITIONS,
    *,
    pinned: bool = False,
    scale: Scale | None = None,
) -> Values:
    """Each connection sends one record, waits for the answer (acks=all), and sends the next.

    As a producer of keyed records does, it goes from partition to partition, and sizes vary; a broker can remember
    little from one request to the next. `pinned` is the opposite: always the same partition and the same size.
    """
    scale = scale or contender.scale
    sizes = SMALL_RECORD_BYTES[:1] if pinned else SMALL_RECORD_BYTES
    with contender.topic(partitions) as topic:
        records = [frames.batch(1, size) for size in sizes]
        path = frames.write(
            contender.scratch("single"),
            (frames.produce(topic.id, index, one) for one in records for index in range(partitions)),
        )
        load, cpu_s = contender.with_cpu(
            lambda: contender.load(
                "produce",
                frames=path,
                connections=connections,
                pinned=int(pinned),
                seconds=scale.seconds,
                warmup=scale.warm_up_s,
            )
        )
    return {
        "throughput": load.per_second,
        "p50": load.p50_ms,
        "p99": load.p99_ms,
        "broker CPU": cpu_s / load.total_requests * 1e6,
    }


SINGLE_METRICS = [
    throughput("throughput", "requests/s", digits=0),
    cost("p50", "ms", digits=3),
    cost("p99", "ms", goal=1.0, digits=3),
    cost("broker CPU", "s per M requests", digits=1),
]


def single_produce_line(contenders: list[Contender], connections: int) -> Comparison:
    def measure(each: Contender) -> Values:
        return single_produce(each, connections)

    title = f"one-record produce, acks=all, {connections} conn."
    return Comparison(f"sync-{connections}", title, SINGLE_METRICS, arms(contenders, measure, measure))


def pinned_produce_line(contenders: list[Contender], connections: int) -> Comparison:
    def measure(each: Contender) -> Values:
        return single_produce(each, connections, pinned=True)

    title = f"the same, each of {connections} conn. to its own partition"
    return Comparison(f"pinned-{connections}", title, SINGLE_METRICS, arms(contenders, measure, measure))


def bulk(contender: Contender, record_bytes: int, volume_bytes: int) -> Values:
    """1 MB batches, five in flight on one connection, then the same topic fetched back."""
    records, count = frames.bulk_batch(record_bytes)
    requests = max(1, volume_bytes // len(records))
    with contender.topic() as topic:
        out = frames.write(contender.scratch("bulk"), [frames.produce(topic.id, 0, records)])
        produced, produce_cpu_s = contender.with_cpu(
            lambda: contender.load("produce", frames=out, inflight=IN_FLIGHT, seconds=600, requests=requests)
        )
        fetch_frame, offset_at = frames.fetch(topic.id, 0)
        back = frames.write(contender.scratch("fetch"), [fetch_frame])
        fetched, fetch_cpu_s = contender.with_cpu(
            lambda: contender.load("fetch", fetch_frames=back, offset_at=offset_at, end_offset=count * requests)
        )
    if fetched.records != count * requests:
        raise RuntimeError(f"fetched {fetched.records} records of {count * requests}")
    return {
        "produce": produced.counted_mb_per_second,
        "fetch": fetched.total_mb_per_second,
        "broker CPU produce": produce_cpu_s / produced.total_bytes * 1e9,
        "broker CPU fetch": fetch_cpu_s / fetched.total_bytes * 1e9,
    }


def bulk_line(contenders: list[Contender], record_bytes: int) -> Comparison:
    return Comparison(
        f"bulk-{record_bytes}",
        f"1 MB batches of {record_bytes:,} B records, raw",
        [
            throughput("produce", "MB/s"),
            throughput("fetch", "MB/s"),
            cost("broker CPU produce", "s per GB"),
            cost("broker CPU fetch", "s per GB"),
        ],
        arms(
            contenders,
            lambda each: bulk(each, record_bytes, each.scale.bulk_bytes),
            lambda each: bulk(each, record_bytes, each.scale.bulk_bytes // 3),
        ),
    )


def end_to_end(contender: Contender, rate: int, seconds: float) -> Values:
    """Records due at a fixed rate, sent as they become due; from the moment due to the moment a consumer has them."""
    with contender.topic() as topic:
        out = frames.write(
            contender.scratch("e2e"),
            (
                frames.produce(topic.id, 0, frames.batch(count, E2E_RECORD_BYTES))
                for count in range(1, E2E_BATCH_RECORDS_MAX + 1)
            ),
        )
        fetch_frame, offset_at = frames.fetch(topic.id, 0)
        back = frames.write(contender.scratch("e2e-fetch"), [fetch_frame])
        load, cpu_s = contender.with_cpu(
            lambda: contender.load(
                "e2e",
                frames=out,
                fetch_frames=back,
                offset_at=offset_at,
                rate=rate,
                inflight=IN_FLIGHT,
                seconds=seconds,
                warmup=contender.scale.warm_up_s,
            )
        )
    return {"p50": load.p50_ms, "p99": load.p99_ms, "broker CPU": cpu_s / load.records * 1e6}


def end_to_end_line(contenders: list[Contender], rate: int) -> Comparison:
    return Comparison(
        f"e2e-{rate}",
        f"end to end at {rate:,} records/s",
        [
            cost("p50", "ms", digits=3),
            cost("p99", "ms", goal=1.0, digits=3),
            cost("broker CPU", "s per M records", digits=1),
        ],
        arms(
            contenders,
            lambda each: end_to_end(each, rate, each.scale.seconds),
            lambda each: end_to_end(each, rate, each.scale.seconds / 2),
        ),
    )
