"""What becomes of an application's state and topics when it ends at a bad moment, is changed, or starts over."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewPartitions

import ottla.spark
from ottla.client.settings import parse_named
from ottla.common.errors import OttlaError
from ottla.spark.sink import publishing
from ottla.streams import Processor, ProcessorContext, Record, StreamsBuilder, Topology, key_value_store, serdes
from ottla.streams.engine.application import StreamsApplication
from ottla.streams.engine.task_state import open_state
from ottla.testing import Broker
from tests.spark import topics
from tests.spark.streams.test_application import by_key, produce

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def servers(broker: Broker) -> str:
    return broker.bootstrap_servers


def names(servers: str, *wanted: str, partitions: int = 1) -> tuple[str, ...]:
    return tuple(topics.create(servers, partitions, name=f"{name}-{next(_numbers)}") for name in wanted)


def word_count(source: str, out: str, store: str = "counts") -> Topology:
    builder = StreamsBuilder(key=serdes.string, value=serdes.string)
    words = builder.stream(source).group_by(lambda key, value: value)
    words.count(store=store).to_stream().map_values(str).to(out)
    return builder.build()


def counting(servers: str, source: str, out: str, **more: Any) -> StreamsApplication:
    number = more.pop("number", None) or next(_numbers)
    return StreamsApplication(word_count(source, out, **more), application_id=f"words-{number}", bootstrap=servers)


def send(servers: str, topic: str, *words: str) -> None:
    produce(servers, [(topic, "k", word, 5) for word in words], {"k": 0})


class OnlyOnce(Processor):
    """Fails for a value that it has seen: what would be computed twice is noticed."""

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._seen = context.store("seen")

    def process(self, record: Record) -> None:
        assert self._seen.get(record.value) is None, f"{record.value} was there before"
        self._seen.put(record.value, True)
        self.context.forward(record)


def test_a_batch_that_was_committed_and_that_spark_does_not_know_of_is_not_computed_again(
    spark: Any, servers: str, tmp_path: Path
) -> None:
    source, out = names(servers, "in", "out")
    builder = StreamsBuilder(key=serdes.string, value=serdes.string)
    builder.add_store(key_value_store("seen", key=serdes.string))
    builder.stream(source).process(OnlyOnce, stores=["seen"]).to(out)
    application = StreamsApplication(builder.build(), application_id=f"once-{next(_numbers)}", bootstrap=servers)
    send(servers, source, "a", "b")
    application.run_available(spark, checkpoint=str(tmp_path))
    # As if the driver had been killed between the broker's commit and Spark's.
    for file in ("0", ".0.crc"):
        (tmp_path / "commits" / file).unlink(missing_ok=True)
    send(servers, source, "c")
    application.run_available(spark, checkpoint=str(tmp_path))
    assert [value for value, _ in by_key(servers, out)["k"]] == ["a", "b", "c"]


def test_records_of_repartition_topics_are_deleted_when_they_were_processed(
    spark: Any, servers: str, tmp_path: Path
) -> None:
    source, out = names(servers, "in", "out")
    application = counting(servers, source, out)
    send(servers, source, "a", "b", "a")
    application.run_available(spark, checkpoint=str(tmp_path))
    consumer = confluent_kafka.Consumer({"bootstrap.servers": servers, "group.id": "looks"})
    topic = f"{application.application_id}-counts-repartition"
    low, high = consumer.get_watermark_offsets(confluent_kafka.TopicPartition(topic, 0), 10)
    consumer.close()
    assert high >= 3 and low >= 3
    send(servers, source, "a")
    application.run_available(spark, checkpoint=str(tmp_path))
    assert by_key(servers, out)["a"][-1][0] == "3"


@pytest.mark.slow
def test_an_application_that_is_forgotten_is_refused_until_its_state_is_deleted_too(
    spark: Any, servers: str, tmp_path: Path
) -> None:
    source, out = names(servers, "in", "out")
    application = counting(servers, source, out)
    send(servers, source, "a")
    application.run_available(spark, checkpoint=str(tmp_path / "first"))
    with pytest.raises(OttlaError, match="with another checkpoint"):
        application.start(spark, checkpoint=str(tmp_path / "second"))
    ottla.spark.forget(name=application.application_id, bootstrap=servers)
    with pytest.raises(OttlaError, match="count its input twice"):
        application.start(spark, checkpoint=str(tmp_path / "second"))
    application.reset()
    application.run_available(spark, checkpoint=str(tmp_path / "third"))
    assert [value for value, _ in by_key(servers, out)["a"]] == ["1", "1"]


@pytest.mark.slow
def test_a_first_batch_that_was_lost_leaves_nothing_that_keeps_it_from_starting(
    spark: Any, servers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, out = names(servers, "in", "out")
    application = counting(servers, source, out)
    send(servers, source, "a")
    commit = publishing.TransactionalProducer.commit

    def lose(self: Any) -> None:
        monkeypatch.setattr(publishing.TransactionalProducer, "commit", commit)
        self.abort()
        raise OttlaError("the driver died here.")

    monkeypatch.setattr(publishing.TransactionalProducer, "commit", lose)
    with pytest.raises(OttlaError, match="died here"):
        application.run_available(spark, checkpoint=str(tmp_path / "first"))
    application.run_available(spark, checkpoint=str(tmp_path / "second"))
    assert [value for value, _ in by_key(servers, out)["a"]] == ["1"]


def test_state_is_restored_without_what_was_aborted_and_not_from_another_life_of_its_topics(
    spark: Any, servers: str, tmp_path: Path
) -> None:
    source, out = names(servers, "in", "out")
    application = counting(servers, source, out)
    send(servers, source, "a", "a")
    application.run_available(spark, checkpoint=str(tmp_path))
    log = f"{application.application_id}-counts-changelog"
    producer = confluent_kafka.Producer({"bootstrap.servers": servers, "transactional.id": f"zombie-{log}"})
    producer.init_transactions(10)
    producer.begin_transaction()
    producer.produce(log, serdes.integer.serialize(log, 77), b"a", partition=0)
    producer.flush(10)
    producer.abort_transaction(10)

    def restored(generation: str) -> Any:
        specs = {"counts": application.topology.stores["counts"]}
        state = open_state(parse_named(servers, {}), application.application_id, generation, "1_0", 0, specs)
        return specs["counts"].open(state.pending["counts"]).get("a")

    assert restored("one").value == 2
    application.reset()
    application.prepare()
    assert restored("two") is None


@pytest.mark.slow
def test_partitions_that_are_added_to_an_input_are_read_where_no_state_lies_by_them(
    spark: Any, servers: str, tmp_path: Path
) -> None:
    source, out = names(servers, "in", "out")
    application = counting(servers, source, out)
    send(servers, source, "a")
    application.run_available(spark, checkpoint=str(tmp_path))
    admin = AdminClient({"bootstrap.servers": servers})
    for answer in admin.create_partitions([NewPartitions(source, 3)]).values():
        answer.result(10)
    produce(servers, [(source, "k", "a", 5)], {"k": 2})
    application.run_available(spark, checkpoint=str(tmp_path))
    assert by_key(servers, out)["a"][-1][0] == "2"


def test_partitions_that_are_added_where_keys_have_state_are_refused(servers: str) -> None:
    source, out = names(servers, "in", "out")
    builder = StreamsBuilder(key=serdes.string, value=serdes.string)
    builder.stream(source).group_by_key().count(store="counts").to_stream().map_values(str).to(out)
    application = StreamsApplication(builder.build(), application_id=f"keyed-{next(_numbers)}", bootstrap=servers)
    application.prepare()
    admin = AdminClient({"bootstrap.servers": servers})
    for answer in admin.create_partitions([NewPartitions(source, 2)]).values():
        answer.result(10)
    with pytest.raises(OttlaError, match="has 1 partitions, and the topology now needs 2"):
        application.prepare()


def test_state_of_another_application_is_not_taken_for_ones_own(servers: str) -> None:
    source, out = names(servers, "in", "out")
    application = counting(servers, source, out)
    log = topics.create(servers, 1, name=f"{application.application_id}-counts-changelog")
    send(servers, log, "of somebody else")
    with pytest.raises(OttlaError, match=f"the topic '{log}' has records, but how far application"):
        application.prepare()
    assert by_key(servers, log) == {"k": [("of somebody else", 5)]}


@pytest.mark.slow
def test_a_checkpoint_of_another_application_or_of_another_topology_is_refused(
    spark: Any, servers: str, tmp_path: Path
) -> None:
    source, out = names(servers, "in", "out")
    number = next(_numbers)
    send(servers, source, "a")
    # What has never begun may be changed.
    with pytest.raises(OttlaError, match="'nowhere', which is written to, does not exist"):
        counting(servers, source, "nowhere", number=number, store="typo").start(spark, checkpoint=str(tmp_path))
    counting(servers, source, out, number=number).run_available(spark, checkpoint=str(tmp_path))
    with pytest.raises(OttlaError, match=f"belongs to the application 'words-{number}'"):
        counting(servers, source, out).start(spark, checkpoint=str(tmp_path))
    renamed = counting(servers, source, out, number=number, store="totals")
    with pytest.raises(OttlaError, match="the store 'counts' is gone, and 'totals' is new"):
        renamed.start(spark, checkpoint=str(tmp_path))
    send(servers, source, "a")
    counting(servers, source, out, number=number).run_available(spark, checkpoint=str(tmp_path))
    assert by_key(servers, out)["a"][-1][0] == "2"


def test_a_global_table_is_looked_up_whatever_the_partitions(spark: Any, servers: str, tmp_path: Path) -> None:
    orders, out = names(servers, "orders", "out", partitions=2)
    (rates,) = names(servers, "rates", partitions=3)
    builder = StreamsBuilder(key=serdes.string, value=serdes.string)
    table = builder.global_table(rates)
    joined = builder.stream(orders).join(table, lambda order, rate: f"{order} at {rate}", key_of=lambda k, v: v)
    joined.to(out)
    application = StreamsApplication(builder.build(), application_id=f"rates-{next(_numbers)}", bootstrap=servers)
    produce(servers, [(rates, "eur", "1.1", 1), (rates, "usd", "0.9", 1)], {"eur": 0, "usd": 2})
    produce(servers, [(orders, "one", "usd", 5), (orders, "two", "eur", 5)], {"one": 0, "two": 1})
    application.run_available(spark, checkpoint=str(tmp_path))
    produce(servers, [(rates, "usd", "0.8", 1)], {"usd": 2})
    produce(servers, [(orders, "one", "usd", 6)], {"one": 0})
    application.run_available(spark, checkpoint=str(tmp_path))
    found = by_key(servers, out)
    assert [value for value, _ in found["one"]] == ["usd at 0.9", "usd at 0.8"]
    assert [value for value, _ in found["two"]] == ["eur at 1.1"]


@pytest.mark.slow
def test_a_stream_may_begin_with_what_comes(spark: Any, servers: str, tmp_path: Path) -> None:
    source, out = names(servers, "in", "out")
    builder = StreamsBuilder(key=serdes.string, value=serdes.string)
    builder.stream(source, reset="latest").to(out)
    application = StreamsApplication(builder.build(), application_id=f"latest-{next(_numbers)}", bootstrap=servers)
    send(servers, source, "before")
    application.run_available(spark, checkpoint=str(tmp_path))
    send(servers, source, "after")
    application.run_available(spark, checkpoint=str(tmp_path))
    assert [value for value, _ in by_key(servers, out)["k"]] == ["after"]
