"""Lines of Ottla against itself: it should not notice idle connections, many partitions, or a compaction going on."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from bench import frames, loadgen
from bench.contenders import Contender
from bench.lines_wire import IN_FLIGHT, bulk, single_produce
from bench.measure import Arm, Comparison, Values, cost, throughput
from bench.wire import frame
from ottla.protocol.messages import ApiVersionsRequest

IDLE_CONNECTIONS = 1_000
PARTITIONS = 1_000
BUSY_CONNECTIONS = 16
UNCHANGED = 0.85  # less than 15 % slower
RECORD_BYTES = 1_000

COMPACTION_SETTINGS = {"log.cleaner.backoff.ms": "500"}
KEYED_BATCHES_SHARE = 5  # each key is written this often
PACED_RECORD_BYTES = 100
PACED_PER_S, PACED_CONNECTIONS, PACED_WINDOW_S = 1_000, 4, 2.0
COMPACTION_SECONDS_MAX = 180
SEGMENTS = 20  # the last one stays as it is: it is the active one

FLAT = [throughput("single", "requests/s", goal=UNCHANGED, digits=0), throughput("bulk", "MB/s", goal=UNCHANGED)]


def _both_loads(contender: Contender) -> Values:
    return {
        "single": single_produce(contender, BUSY_CONNECTIONS)["throughput"],
        "bulk": bulk(contender, RECORD_BYTES, contender.scale.bulk_bytes // 2)["produce"],
    }


def idle_connections_line(contender: Contender) -> Comparison:
    hello = frames.write(
        contender.scratch("hello"),
        [frame(18, 3, ApiVersionsRequest(client_software_name="bench", client_software_version="1"))],
    )

    def crowded() -> Values:
        with loadgen.held_open(contender.broker.host, contender.broker.port, IDLE_CONNECTIONS, hello):
            return _both_loads(contender)

    return Comparison(
        "idle-connections",
        f"{contender.label} with {IDLE_CONNECTIONS:,} idle connections",
        FLAT,
        [Arm("alone", lambda: _both_loads(contender), lambda: _both_loads(contender)), Arm("crowded", crowded)],
    )


def partitions_line(bare: Contender, full: Contender) -> Comparison:
    """`full` is a second broker, which gets a topic of a thousand partitions that nobody uses."""

    def fill() -> None:
        with full.connect() as connection:
            connection.create_topic("many", PARTITIONS)
        _both_loads(full)

    return Comparison(
        "partitions",
        f"{bare.label} with {PARTITIONS:,} more partitions",
        FLAT,
        [
            Arm("few", lambda: _both_loads(bare), lambda: _both_loads(bare)),
            Arm("many", lambda: _both_loads(full), fill),
        ],
    )


def spread_line(contender: Contender) -> Comparison:
    """The same connections, but each request goes to the next of a thousand partitions."""

    def over(partitions: int) -> Values:
        return {"single": single_produce(contender, BUSY_CONNECTIONS, partitions)["throughput"]}

    return Comparison(
        "spread",
        f"{contender.label}, single produces spread over {PARTITIONS:,} partitions",
        FLAT[:1],
        [
            Arm("few", lambda: over(BUSY_CONNECTIONS), lambda: over(BUSY_CONNECTIONS)),
            Arm("spread", lambda: over(PARTITIONS)),
        ],
    )


# --- compaction ------------------------------------------------------------------------------------------------------


def _paced_p99(contender: Contender, path: Path) -> float:
    load = contender.load(
        "produce",
        frames=path,
        connections=PACED_CONNECTIONS,
        inflight=IN_FLIGHT,
        rate=PACED_PER_S,
        seconds=PACED_WINDOW_S,
        warmup=0.2,
    )
    return load.p99_ms


def _small_frames(contender: Contender, topic_id: bytes) -> Path:
    return frames.write(contender.scratch("paced"), [frames.produce(topic_id, 0, frames.batch(1, PACED_RECORD_BYTES))])


def _quiet(contender: Contender) -> Values:
    with contender.topic() as topic:
        path = _small_frames(contender, topic.id)
        return {"p99": statistics.median(_paced_p99(contender, path) for _ in range(4))}


def _fill_with_keys(contender: Contender, topic_id: bytes) -> None:
    per_batch = frames.BATCH_BYTES // (RECORD_BYTES + 24)
    distinct = max(1, contender.scale.compacted_bytes // frames.BATCH_BYTES // KEYED_BATCHES_SHARE)
    path = frames.write(
        contender.scratch("keyed"),
        (
            frames.produce(
                topic_id,
                0,
                frames.batch(
                    per_batch, RECORD_BYTES, keys=[b"%010d" % (number * per_batch + i) for i in range(per_batch)]
                ),
            )
            for number in range(distinct)
        ),
    )
    contender.load("produce", frames=path, inflight=IN_FLIGHT, seconds=600, requests=distinct * KEYED_BATCHES_SHARE)
    path.unlink()


def _while_compacting(contender: Contender) -> Values:
    """Fills a topic, lets the cleaner at it, and measures for as long as the cleaner works."""
    with (
        contender.topic(config={"segment.bytes": str(contender.scale.compacted_bytes // SEGMENTS)}) as dirty,
        contender.topic() as topic,
    ):
        _fill_with_keys(contender, dirty.id)
        path = _small_frames(contender, topic.id)
        data_dir: Path = contender.broker.folder / "data"
        files = data_dir / f"{dirty.name}-0"
        before = _size(files)
        with contender.connect() as connection:
            connection.alter_topic(dirty.name, {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"})
        windows, started, deadline = [], time.monotonic(), time.monotonic() + COMPACTION_SECONDS_MAX
        while _size(files) > before * 0.5 or list(files.glob("*.cleaned")):
            if time.monotonic() > deadline:
                raise RuntimeError(f"the topic was not compacted within {COMPACTION_SECONDS_MAX} s")
            if list(files.glob("*.cleaned")):
                windows.append(_paced_p99(contender, path))
            else:
                time.sleep(0.02)
        if not windows:
            raise RuntimeError("the compaction was over before it could be observed")
        return {"p99": statistics.median(windows), "compaction": time.monotonic() - started}


def _size(folder: Path) -> int:
    total = 0
    for path in folder.glob("*.log"):
        try:
            total += path.stat().st_size
        except FileNotFoundError:
            continue
    return total


def compaction_line(contender: Contender) -> Comparison:
    volume = contender.scale.compacted_bytes / 1e9
    return Comparison(
        "compaction",
        f"{contender.label}, produce at {PACED_PER_S:,}/s while {volume:g} GB is compacted",
        [cost("p99", "ms", goal=0.5, digits=3)],
        [
            Arm("quiet", lambda: _quiet(contender), lambda: _quiet(contender)),
            Arm("compacting", lambda: _while_compacting(contender)),
        ],
    )
