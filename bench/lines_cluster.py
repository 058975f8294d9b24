"""Lines on three brokers: every record on all of them before it is acknowledged, and what a broker that goes costs.

Both clusters have replication factor 3, min.insync.replicas 2 and acks=all; Apache Kafka's is KRaft with combined roles
and heaps of 512 MB. Partitions are led by the three brokers in turn, and each connection talks to one of them.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from bench import frames, loadgen
from bench.contenders import QUICK_DELETE, SETTLE_S, Scale, Topic
from bench.lines_wire import IN_FLIGHT, SMALL_RECORD_BYTES
from bench.measure import Arm, Comparison, Values, cost, throughput
from bench.wire import Connection, WireError
from ottla.client.cluster import ClusterClient
from ottla.common.errors import OttlaError
from ottla.protocol.messages import ProduceRequest
from tests.support.trio import IDS, Trio

CONNECTIONS = (1, 16)
PARTITIONS = 12
# As many connections as there are leaders.
BULK_CONNECTIONS = len(IDS)
WATCH_S = 1.0
FAILOVER_S_MAX = 120.0
PARTITION_COUNTS = (50, 500, 2_000)
TOPIC_SETTINGS = {**QUICK_DELETE, "min.insync.replicas": "2"}
MB = 1e6
_numbers = itertools.count(1)


class ClusterContender:
    """A running cluster with a folder for the requests that are made for it."""

    def __init__(self, label: str, trio: Trio, scale: Scale) -> None:
        self.label = label
        self.trio = trio
        self.scale = scale

    @property
    def ports(self) -> list[int]:
        return [node.port for node in self.trio.nodes.values()]

    def client(self, timeout_s: float = 15.0) -> ClusterClient:
        return ClusterClient(self.trio.bootstrap, timeout_s=timeout_s)

    def connect(self, broker: int = IDS[0]) -> Connection:
        return Connection(self.trio.hosts[broker], self.trio.nodes[broker].port)

    @contextlib.contextmanager
    def topic(self, partitions: int) -> Iterator[Topic]:
        """A new topic whose partitions are led by the brokers in turn."""
        name = f"bench-{next(_numbers)}"
        turns = [[IDS[(index + step) % len(IDS)] for step in range(len(IDS))] for index in range(partitions)]
        with self.connect() as connection:
            topic_id = connection.ask_for_topic(
                name, partitions, 3, {**QUICK_DELETE, "min.insync.replicas": "2"}, turns
            )
        self.await_leaders(name, partitions)
        yield Topic(name, topic_id)
        with self.connect() as connection:
            connection.delete_topic(name)
        time.sleep(SETTLE_S)
        os.sync()

    def await_leaders(self, topic: str, partitions: int, without: int | None = None, isr: int = 3) -> None:
        """Until every broker that is there names a leader of every partition, with so many replicas in sync."""
        deadline = time.monotonic() + FAILOVER_S_MAX
        for broker in IDS:
            if broker == without:
                continue
            with contextlib.closing(ClusterClient(self._address(broker), timeout_s=15.0)) as client:
                while not _is_led(client, topic, partitions, without, isr):
                    if time.monotonic() > deadline:
                        raise WireError(f"topic {topic} got no leaders")
                    time.sleep(0.02)

    def _address(self, broker: int) -> str:
        return f"{self.trio.hosts[broker]}:{self.trio.nodes[broker].port}"

    def with_cpu(self, work: Callable[[], loadgen.Load]) -> tuple[loadgen.Load, float]:
        before = self.trio.cpu_seconds()
        done = work()
        return done, self.trio.cpu_seconds() - before


def _is_led(client: ClusterClient, topic: str, partitions: int, without: int | None, isr: int) -> bool:
    try:
        (told,) = client.metadata([topic]).topics
    except (OttlaError, OSError):
        client.close()
        return False
    return len(told.partitions) == partitions and all(
        one.leader_id in IDS and one.leader_id != without and len(one.isr_nodes) >= isr for one in told.partitions
    )


# --- requests per second -------------------------------------------------------------------------------------------


def single_produce(contender: ClusterContender, connections: int) -> Values:
    """Each connection sends one record, waits until two others have it, and sends the next."""
    with contender.topic(PARTITIONS) as topic:
        path = frames.write(
            contender.trio.folder / "single",
            (
                frames.produce(topic.id, index, records)
                for records in [frames.batch(1, size) for size in SMALL_RECORD_BYTES]
                for index in range(PARTITIONS)
            ),
        )
        load, cpu_s = contender.with_cpu(
            lambda: loadgen.run(
                "produce",
                contender.trio.hosts[1],
                contender.ports,
                frames=path,
                connections=connections,
                seconds=contender.scale.seconds,
                warmup=contender.scale.warm_up_s,
                error_at=frames.PRODUCE_ERROR_AT,
            )
        )
    return {
        "throughput": load.per_second,
        "p50": load.p50_ms,
        "p99": load.p99_ms,
        "CPU": cpu_s / load.total_requests * 1e6,
    }


def single_produce_line(contenders: Sequence[ClusterContender], connections: int) -> Comparison:
    return Comparison(
        f"cluster-sync-{connections}",
        f"three brokers: one-record produce, acks=all, {connections} conn.",
        [
            throughput("throughput", "requests/s", goal=2.0, digits=0),
            cost("p50", "ms", digits=3),
            cost("p99", "ms", goal=2.0, digits=3),
            cost("CPU", "s per M requests", digits=1),
        ],
        _arms(contenders, lambda each: single_produce(each, connections)),
    )


# --- bytes per second, and memory afterwards -----------------------------------------------------------------------


def bulk(contender: ClusterContender, volume_bytes: int) -> Values:
    """1 MB batches of 1 KB records, a connection to each leader with five in flight."""
    records, _ = frames.bulk_batch(1_000)
    with contender.topic(BULK_CONNECTIONS) as topic:
        made = (frames.produce(topic.id, index, records) for index in range(BULK_CONNECTIONS))
        path = frames.write(contender.trio.folder / "bulk", made)
        load, cpu_s = contender.with_cpu(
            lambda: loadgen.run(
                "produce",
                contender.trio.hosts[1],
                contender.ports,
                frames=path,
                connections=BULK_CONNECTIONS,
                inflight=IN_FLIGHT,
                seconds=240,
                requests=max(BULK_CONNECTIONS, volume_bytes // len(records)),
                error_at=frames.PRODUCE_ERROR_AT,
            )
        )
    return {
        "produce": load.counted_mb_per_second,
        "CPU": cpu_s / load.total_bytes * 1e9,
        "memory": contender.trio.rss_bytes() / MB,
    }


def bulk_line(contenders: Sequence[ClusterContender]) -> Comparison:
    return Comparison(
        "cluster-bulk-1000",
        "three brokers: 1 MB batches of 1 KB records, acks=all",
        [
            throughput("produce", "MB/s", goal=1.5),
            cost("CPU", "s per GB"),
            cost("memory", "MB, all three", goal=6.0, digits=0),
        ],
        _arms(contenders, lambda each: bulk(each, each.scale.bulk_bytes // 2)),
    )


# --- failover --------------------------------------------------------------------------------------------------------


class Prober(threading.Thread):
    """Sends record after record to one partition, to whoever leads it, and notes when each was acknowledged."""

    def __init__(self, contender: ClusterContender, topic: Topic, partition: int) -> None:
        super().__init__(daemon=True)
        self.partition = partition
        self.successes: list[float] = []
        self.stopping = False
        self._contender = contender
        self._topic = topic

    def run(self) -> None:
        row = ProduceRequest.PartitionProduceData(index=self.partition, records=frames.batch(1, 100))
        data = ProduceRequest.TopicProduceData(name=self._topic.name, topic_id=self._topic.id, partition_data=[row])
        request = ProduceRequest(transactional_id=None, acks=-1, timeout_ms=1_000, topic_data=[data])
        client = self._contender.client(timeout_s=1.0)
        while not self.stopping:
            try:
                leader = client.leaders([self._topic.name])[self._topic.name, self.partition]  # type: ignore[index]
                connection = client.broker(leader)
                while not self.stopping:
                    answer = connection.call(request)
                    if answer.responses[0].partition_responses[0].error_code:
                        break
                    self.successes.append(time.monotonic())
                    time.sleep(0.005)
            except (OttlaError, OSError):
                pass
            client.close()
            time.sleep(0.02)

    def gap_s(self, since: float) -> float:
        """The longest time without a success after then."""
        times = [since, *(at for at in self.successes if at > since)]
        return max((later - earlier for earlier, later in itertools.pairwise(times)), default=0.0)


def gap_after(contender: ClusterContender, harm: Callable[[int], None], mend: Callable[[int], None]) -> Values:
    """Seconds without a success in a partition after its leader was harmed."""
    trio = contender.trio
    with contender.topic(len(IDS)) as topic:
        probers = [Prober(contender, topic, index) for index in range(len(IDS))]
        for prober in probers:
            prober.start()
        _await(lambda: all(len(prober.successes) > 50 for prober in probers))
        victim = trio.leader(topic.name, 0)
        since = time.monotonic()
        harm(victim)
        try:
            # The other two partitions lose a follower; whoever waits longest is what counts.
            _await(lambda: all(prober.successes[-1] > since + WATCH_S for prober in probers[1:]))
            _await(lambda: probers[0].successes[-1] > since + WATCH_S and probers[0].gap_s(since) > 0)
            time.sleep(WATCH_S)
        finally:
            mend(victim)
        for prober in probers:
            prober.stopping = True
        for prober in probers:
            prober.join(30)
        gaps = [prober.gap_s(since) for prober in probers]
        trio.await_members()
        trio.await_in_sync()
    return {"gap": max(gaps), "gap of its own partitions": gaps[0]}


def failover_line(contenders: Sequence[ClusterContender], name: str) -> Comparison:
    def measure(each: ClusterContender) -> Values:
        nodes = each.trio.nodes
        if name == "kill":
            return gap_after(each, lambda victim: nodes[victim].kill(), lambda victim: nodes[victim].start())
        return gap_after(each, lambda victim: nodes[victim].pause(), lambda victim: nodes[victim].resume())

    titles = {"kill": "kill -9", "pause": "SIGSTOP"}
    return Comparison(
        f"cluster-{name}",
        f"three brokers: without a success after {titles[name]} of a leader",
        [cost("gap", "s", goal=1.0), cost("gap of its own partitions", "s")],
        [Arm(each.label, partial(measure, each)) for each in contenders],
    )


# --- many partitions -------------------------------------------------------------------------------------------------


def many_partitions(contender: ClusterContender, partitions: int) -> Values:
    """How long it takes until all are led: when they are made, when a broker is killed, when it is the controller."""
    trio = contender.trio
    name = f"many-{next(_numbers)}"
    before = time.monotonic()
    with contender.connect() as connection:
        connection.ask_for_topic(name, partitions, 3, QUICK_DELETE)
    contender.await_leaders(name, partitions)
    values = {"creation": time.monotonic() - before}
    controller = trio.controller()
    for what, victim in (
        ("failover", next(one for one in IDS if one != controller)),
        ("controller failover", controller),
    ):
        trio.nodes[victim].kill()
        before = time.monotonic()
        contender.await_leaders(name, partitions, without=victim, isr=1)
        values[what] = time.monotonic() - before
        trio.nodes[victim].start()
        trio.await_members()
        trio.await_in_sync()
    values["memory"] = trio.rss_bytes() / MB
    with contender.connect() as connection:
        connection.delete_topic(name)
    time.sleep(SETTLE_S)
    return values


def many_partitions_line(contenders: Sequence[ClusterContender], partitions: int) -> Comparison:
    return Comparison(
        f"cluster-partitions-{partitions}",
        f"three brokers: {partitions:,} partitions x 3",
        [
            cost("creation", "s"),
            cost("failover", "s after kill -9 of a broker"),
            cost("controller failover", "s after kill -9 of the controller"),
            cost("memory", "MB, all three", digits=0),
        ],
        [Arm(each.label, partial(many_partitions, each, partitions)) for each in contenders],
    )


def _arms(contenders: Sequence[ClusterContender], measure: Callable[[ClusterContender], Values]) -> list[Arm]:
    return [Arm(each.label, partial(measure, each), partial(measure, each)) for each in contenders]


def _await(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + FAILOVER_S_MAX
    while not is_so():
        if time.monotonic() > deadline:
            raise RuntimeError("the cluster does not recover")
        time.sleep(0.01)
