"""Reading over the wire: offsets, ranges, restarts, what is gone. Against Ottla in this process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import confluent_kafka
import confluent_kafka.admin
import pytest

pytest.importorskip("pyarrow")

from ottla.client.fetching import DataLoss, OffsetRange, fetch_ranges
from ottla.client.lookup import EARLIEST, LATEST, NO_OFFSET, ClusterReader
from ottla.client.settings import ClientSettings, parse_settings
from ottla.common.errors import OttlaError
from ottla.common.ids import TopicPartition
from ottla.kernel.decode import Decoder
from ottla.testing import Broker
from tests.support.brokers import OttlaProcess


def settings_for(servers: str, **more: Any) -> ClientSettings:
    return parse_settings(
        {"kafka.bootstrap.servers": servers, **{f"kafka.{k.replace('_', '.')}": str(v) for k, v in more.items()}}
    )


def fail(sentence: str) -> None:
    raise DataLoss(sentence)


def values(reader: ClusterReader, *ranges: OffsetRange, on_loss: Callable[[str], None] = fail) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for one in fetch_ranges(reader, ranges, on_loss):
        decoder = Decoder(one.records, one.start, one.range.end, one.aborted)
        while (columns := decoder.next_columns()) is not None:
            found.setdefault(str(one.range.where), []).extend(columns[1].to_pylist())
    return found


def produce(servers: str, topic: str, numbers: range, partitions: int = 1, size: int = 0, **config: Any) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": servers, **config})
    for number in numbers:
        producer.produce(topic, b"%d" % number + b"x" * size, partition=number % partitions, timestamp=1_000 + number)
        producer.poll(0)
    assert producer.flush(30) == 0


@pytest.fixture
def reader(broker: Broker) -> Any:
    with ClusterReader(settings_for(broker.bootstrap_servers)) as made:
        yield made


def test_offsets_at_the_ends_and_at_a_time(broker: Broker, reader: ClusterReader, make_topic: Any) -> None:
    topic = make_topic(partitions=2)
    produce(broker.bootstrap_servers, topic, range(10), 2)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    assert reader.partitions([topic]) == {topic: [0, 1]}
    assert reader.offsets({first: EARLIEST, second: LATEST}) == {first: 0, second: 5}
    assert reader.offsets({first: 1_004, second: 5_000}) == {first: 2, second: NO_OFFSET}


def test_a_topic_that_is_not_there(reader: ClusterReader) -> None:
    assert reader.partitions(["absent"]) == {}


def test_ranges_of_several_partitions(broker: Broker, reader: ClusterReader, make_topic: Any) -> None:
    topic = make_topic(partitions=3)
    produce(broker.bootstrap_servers, topic, range(300), 3)
    found = values(reader, OffsetRange(topic, 0, 0, 100), OffsetRange(topic, 1, 10, 20), OffsetRange(topic, 2, 5, 5))
    assert found[f"{topic}-0"] == [b"%d" % n for n in range(0, 300, 3)]
    assert found[f"{topic}-1"] == [b"%d" % n for n in range(1, 300, 3)][10:20]
    assert f"{topic}-2" not in found


def test_answers_smaller_than_a_record_still_move_on(broker: Broker, make_topic: Any) -> None:
    topic = make_topic(partitions=2)
    produce(broker.bootstrap_servers, topic, range(40), 2, size=50_000)
    with ClusterReader(settings_for(broker.bootstrap_servers, fetch_max_bytes=1, max_partition_fetch_bytes=1)) as small:
        found = values(small, OffsetRange(topic, 0, 0, 20), OffsetRange(topic, 1, 0, 20))
    assert [len(rows) for rows in found.values()] == [20, 20]


def test_a_reader_that_stops_early_can_go_on(broker: Broker, reader: ClusterReader, make_topic: Any) -> None:
    topic = make_topic()
    produce(broker.bootstrap_servers, topic, range(100))
    abandoned = fetch_ranges(reader, [OffsetRange(topic, 0, 0, 100)], fail)
    next(abandoned)
    abandoned.close()
    assert len(values(reader, OffsetRange(topic, 0, 0, 100))[f"{topic}-0"]) == 100


def test_deleted_offsets_are_a_loss(broker: Broker, reader: ClusterReader, make_topic: Any) -> None:
    topic = make_topic()
    produce(broker.bootstrap_servers, topic, range(100))
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    (deleted,) = admin.delete_records([confluent_kafka.TopicPartition(topic, 0, 30)]).values()
    deleted.result(10)
    with pytest.raises(DataLoss, match=r"offsets 10 to 99 .* it has only 30 to 99 now"):
        values(reader, OffsetRange(topic, 0, 10, 100))
    heard: list[str] = []
    found = values(reader, OffsetRange(topic, 0, 10, 100), on_loss=heard.append)
    assert found[f"{topic}-0"] == [b"%d" % n for n in range(30, 100)]
    assert len(heard) == 1
    assert values(reader, OffsetRange(topic, 0, 10, 20), on_loss=heard.append) == {}


def test_a_topic_that_is_deleted_is_a_loss(broker: Broker, reader: ClusterReader, make_topic: Any) -> None:
    kept, gone = make_topic(), make_topic()
    for topic in (kept, gone):
        produce(broker.bootstrap_servers, topic, range(10))
    reader.partitions([kept, gone])
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.delete_topics([gone])[gone].result(10)
    ranges = OffsetRange(gone, 0, 0, 10), OffsetRange(kept, 0, 0, 10)
    with pytest.raises(DataLoss, match=f"partition {gone}-0 does not exist any more"):
        values(reader, *ranges)
    heard: list[str] = []
    assert len(values(reader, *ranges, on_loss=heard.append)[f"{kept}-0"]) == 10
    assert len(heard) == 1


def test_offsets_that_never_were_are_a_loss(broker: Broker, reader: ClusterReader, make_topic: Any) -> None:
    topic = make_topic()
    produce(broker.bootstrap_servers, topic, range(10))
    with pytest.raises(DataLoss, match="it has only 0 to 9 now"):
        values(reader, OffsetRange(topic, 0, 500, 600))


def test_only_committed_records_are_read_by_default(broker: Broker, reader: ClusterReader, make_topic: Any) -> None:
    topic = make_topic()
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": topic})
    producer.init_transactions(10)
    for number in range(6):
        producer.begin_transaction()
        producer.produce(topic, b"%d" % number)
        producer.flush(10)
        producer.commit_transaction(10) if number % 2 else producer.abort_transaction(10)
    end = reader.offsets({TopicPartition(topic, 0): LATEST})[TopicPartition(topic, 0)]
    whole = OffsetRange(topic, 0, 0, end)
    assert values(reader, whole)[f"{topic}-0"] == [b"1", b"3", b"5"]
    with ClusterReader(settings_for(broker.bootstrap_servers, isolation_level="read_uncommitted")) as dirty:
        assert values(dirty, whole)[f"{topic}-0"] == [b"%d" % number for number in range(6)]


def test_a_range_that_was_cleaned_away_ends(broker: Broker, reader: ClusterReader, make_topic: Any) -> None:
    """The last offsets before the end hold only a marker: nothing will ever come."""
    topic = make_topic()
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": f"{topic}x"}
    )
    producer.init_transactions(10)
    producer.begin_transaction()
    producer.produce(topic, b"a")
    producer.commit_transaction(10)
    assert values(reader, OffsetRange(topic, 0, 1, 2)) == {}
    assert values(reader, OffsetRange(topic, 0, 0, 2))[f"{topic}-0"] == [b"a"]


def test_nobody_there_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ottla.client.lookup._FIRST_CONTACT_TIMEOUT_S", 0.3)
    with pytest.raises(OttlaError, match=r"cannot reach any broker at 127\.0\.0\.1:1"):
        ClusterReader(settings_for("127.0.0.1:1")).partitions(["t"])


def test_reading_goes_on_after_the_broker_was_killed(ottla_process: OttlaProcess) -> None:
    """Once between two answers and once while nobody listens."""
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": ottla_process.bootstrap})
    admin.create_topics([confluent_kafka.admin.NewTopic("t", 2, 1)])["t"].result(10)
    produce(ottla_process.bootstrap, "t", range(2_000), 2, size=500)
    reader = ClusterReader(settings_for(ottla_process.bootstrap, max_partition_fetch_bytes=20_000))
    rows: list[int] = []
    revival = threading.Timer(0.7, ottla_process.start)
    for one in fetch_ranges(reader, [OffsetRange("t", 0, 0, 1_000), OffsetRange("t", 1, 0, 1_000)], fail):
        decoder = Decoder(one.records, one.start, one.range.end, one.aborted)
        while (columns := decoder.next_columns()) is not None:
            rows += [int(value.rstrip(b"x")) for value in columns[1].to_pylist()]
        if revival.ident is None and len(rows) > 200:
            ottla_process.kill()
            revival.start()
    assert revival.ident is not None, "the broker was never killed"
    revival.join()  # else a broker that nobody ends might start after the test
    assert sorted(rows) == list(range(2_000))
    reader.close()
