"""Pipelines on a real Spark and a real broker, under a runner in this process."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from pyspark.sql import functions as F

from ottla.client.admin.transactions import describe_transactions
from ottla.client.cluster import ClusterClient
from ottla.common.errors import OttlaError
from ottla.spark.pipeline.definition import Pipeline, pipeline
from ottla.spark.pipeline.home import FINISHED, STOPPED
from ottla.spark.pipeline.loading import load
from ottla.spark.pipeline.planning import make_plan
from ottla.spark.pipeline.runner import ONCE_FAILURES_MAX
from tests.spark import topics as kafka
from tests.spark.pipeline.conftest import Running, order
from tests.support.brokers import OttlaProcess
from tests.support.kafka_jars import REPO_ROOT

ORDERS = "customer string not null, euro double"


def copying(name: str, source: str, target: str, **more: Any) -> Pipeline:
    @pipeline(name=name, to=target, key="customer", **more)
    def copied(topics: Any) -> Any:
        return topics.stream(source, ORDERS, expect={"below zero": "euro >= 0"}, maxOffsetsPerTrigger=10)

    return copied


def send(servers: str, topic: str, values: list[bytes | None], **more: Any) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": servers})
    for number, value in enumerate(values):
        producer.produce(topic, value, f"k{number}", **more)
    assert producer.flush(30) == 0


def read(servers: str, topic: str) -> list[tuple[bytes | None, bytes | None, dict[str, bytes]]]:
    """Committed records in order: key, value, headers."""
    rows = sorted(kafka.consumed(servers, topic))
    return [(row[2], row[3], dict(row[6] or ())) for row in rows]


def customers(servers: str, topic: str) -> list[str]:
    return [json.loads(value or b"{}")["customer"] for _, value, _ in read(servers, topic)]


def eventually(is_so: Callable[[], bool], timeout_s: float = 280) -> None:
    deadline = time.monotonic() + timeout_s
    while not is_so():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.1)


def test_once_writes_all_that_is_there_and_a_second_run_only_what_is_new(
    spark: Any, servers: str, name: str, tmp_path: Path
) -> None:
    source, target = kafka.create(servers), kafka.create(servers)
    made = copying(name, source, target)
    send(servers, source, [order(f"c{number}", number) for number in range(25)])
    with Running(spark, made, servers, tmp_path, once=True) as first:
        first.wait()
    assert first.error is None
    assert customers(servers, target) == [f"c{number}" for number in range(25)]
    status = first.home.read()
    assert (status.state, status.rows_in, status.rows_out, status.lag) == (FINISHED, 25, 25, 0)
    assert status.bytes_in > 25 * 10
    assert len(first.heard.batches) >= 3

    send(servers, source, [order("new", 1)])
    with Running(spark, made, servers, tmp_path, once=True) as second:
        second.wait()
    assert customers(servers, target)[25:] == ["new"]
    assert second.home.read().rows_out == 1


def test_the_time_out_of_a_pipelines_transactions_is_kafkas_setting(
    spark: Any, servers: str, name: str, tmp_path: Path
) -> None:
    source, target = kafka.create(servers), kafka.create(servers)
    send(servers, source, [order("one", 1)])
    client = {"kafka.transaction.timeout.ms": "70000"}
    with Running(spark, copying(name, source, target), servers, tmp_path, once=True, client=client) as run:
        run.wait()
    assert run.error is None
    with ClusterClient(servers) as cluster:
        found = describe_transactions(cluster, [name])[name]
    assert found is not None
    assert found.timeout_ms == 70_000


def test_bad_records_go_to_the_dead_letter_topic_with_reason_origin_and_headers(
    spark: Any, servers: str, name: str, tmp_path: Path
) -> None:
    source, target = kafka.create(servers), kafka.create(servers)
    bad = [
        b"no json",
        b'{"euro": 1}',
        order("c", -4),
        b'{"customer": "c", "euro": "much"}',
        None,
        b"",
        b"\xff\xfe",
        b"[]",
    ]
    send(servers, source, [order("good", 1), *bad], headers=[("trace", b"t1")])
    with Running(spark, copying(name, source, target), servers, tmp_path, once=True) as run:
        run.wait()
    assert run.error is None
    assert customers(servers, target) == ["good"]
    letters = read(servers, f"{name}-dead-letters")
    assert [value for _, value, _ in letters] == bad
    reasons = [headers["ottla.reason"].decode() for _, _, headers in letters]
    unfit = "the value is no JSON of the columns customer string, euro double"
    assert reasons == [
        unfit,
        "the column 'customer' is missing",
        "below zero",
        unfit,
        "the record has no value",
        "the value is empty",
        unfit,
        unfit,
    ]
    _, _, headers = letters[1]
    assert headers["trace"] == b"t1"
    assert (headers["ottla.source.topic"], headers["ottla.source.partition"]) == (source.encode(), b"0")
    assert (headers["ottla.source.offset"], headers["ottla.pipeline"]) == (b"2", name.encode())
    status = run.home.read()
    assert (status.rows_in, status.rows_out, status.dead_letters) == (9, 1, 8)


def test_several_topics_a_table_and_windows_are_one_pipeline(
    spark: Any, servers: str, name: str, tmp_path: Path
) -> None:
    source, table, enriched, counted = (kafka.create(servers) for _ in range(4))
    send(servers, table, [b'{"customer": "a", "country": "old"}', b'{"customer": "b", "country": "y"}'])
    producer = confluent_kafka.Producer({"bootstrap.servers": servers})
    producer.produce(table, b'{"customer": "a", "country": "x"}', "k0")
    producer.flush(30)
    send(servers, source, [order("a", 1), order("b", 2), order("a", 3), b"bad"])

    @pipeline(name=name, mode="update")
    def made(topics: Any) -> Any:
        rows = topics.stream(source, ORDERS).join(topics.table(table, "customer string, country string"), "customer")
        sums = rows.groupBy("country").sum("euro").withColumnRenamed("sum(euro)", "euro")
        return {enriched: rows, counted: sums.withColumn("key", sums["country"])}

    with Running(spark, made, servers, tmp_path, once=True) as run:
        run.wait()
    assert run.error is None
    got = sorted(json.loads(value or b"")["country"] for _, value, _ in read(servers, enriched))
    assert got == ["x", "x", "y"]
    sums = {key: json.loads(value or b"")["euro"] for key, value, _ in read(servers, counted)}
    assert sums == {b"x": 4.0, b"y": 2.0}
    assert len(read(servers, f"{name}-dead-letters")) == 1


@pytest.mark.parametrize(
    ("key", "keys"), [("customer", [b"a", b"b"]), ("key", [b"k0", b"k1"]), ((), [b"k0", b"k1"])], ids=str
)
def test_a_named_key_counts_also_where_the_value_is_written_as_it_is(
    spark: Any, servers: str, name: str, tmp_path: Path, key: Any, keys: list[bytes]
) -> None:
    source, target = kafka.create(servers), kafka.create(servers)
    send(servers, source, [order("a", 1), order("b", 2)])

    @pipeline(name=name, to=target, key=key)
    def made(topics: Any) -> Any:
        return topics.stream(source, ORDERS).selectExpr("customer", "record.key", "upper(customer) as value")

    with Running(spark, made, servers, tmp_path, once=True) as run:
        run.wait()
    assert run.error is None
    assert [(key, value) for key, value, _ in read(servers, target)] == list(zip(keys, [b"A", b"B"], strict=True))


def test_rows_that_come_after_their_watermark_are_counted(spark: Any, servers: str, name: str, tmp_path: Path) -> None:
    source, target = kafka.create(servers), kafka.create(servers)

    @pipeline(name=name, to=target, mode="update", key="hour")
    def hours(topics: Any) -> Any:
        rows = topics.stream(source, "at timestamp not null").withWatermark("at", "1 minute")
        return rows.groupBy(F.window("at", "1 hour")).count().selectExpr("window.start as hour", "count")

    def run(*times: str) -> Running:
        send(servers, source, [json.dumps({"at": f"2026-01-01T{at}:00Z"}).encode() for at in times])
        with Running(spark, hours, servers, tmp_path, once=True) as done:
            done.wait()
        assert done.error is None
        return done

    assert run("05:00", "10:00").home.read().late_rows == 0
    late = run("05:30", "06:30", "10:30")
    assert late.home.read().late_rows == sum(one.late_rows for one in late.heard.batches) == 2
    assert late.heard.sentences[-1].endswith("2 too late.")


def test_a_stop_comes_after_a_whole_batch_and_the_next_run_goes_on(
    spark: Any, servers: str, name: str, tmp_path: Path
) -> None:
    source, target = kafka.create(servers), kafka.create(servers)
    made = copying(name, source, target)
    send(servers, source, [order(f"c{number}", number) for number in range(200)])
    with Running(spark, made, servers, tmp_path) as run:
        eventually(lambda: len(run.heard.batches) >= 2)
        run.runner.request_stop()
        run.wait()
    assert run.error is None
    assert run.home.read().state == STOPPED
    written = len(customers(servers, target))
    assert 0 < written < 200
    assert written % 10 == 0
    # Spark knows that every batch that was written is done: none has to run once more.
    commits = {int(one.name) for one in (run.home.checkpoint / "commits").iterdir() if one.name.isdigit()}
    assert len(commits) == written // 10
    with Running(spark, made, servers, tmp_path, once=True) as rest:
        rest.wait()
    assert customers(servers, target) == [f"c{number}" for number in range(200)]


def test_a_broker_that_is_down_at_the_start_or_killed_later_is_waited_for(
    spark: Any, ottla_process: OttlaProcess, name: str, tmp_path: Path
) -> None:
    servers = ottla_process.bootstrap
    source, target = kafka.create(servers), kafka.create(servers)
    send(servers, source, [order("before", 1)])

    @pipeline(name=name, to=target, key="customer")
    def made(topics: Any) -> Any:
        return topics.stream(source, ORDERS, **{"kafka.default.api.timeout.ms": 500})

    ottla_process.kill()
    with Running(spark, made, servers, tmp_path / "p") as run:
        eventually(lambda: "restarting" in run.heard.events)
        assert "cannot reach any broker" in run.heard.sentences[-1]
        ottla_process.start()
        eventually(lambda: len(run.heard.batches) >= 1)
        run.heard.events.clear()
        ottla_process.kill()
        eventually(lambda: "restarting" in run.heard.events)
        ottla_process.start()
        send(servers, source, [order("after", 1)])
        eventually(lambda: len(customers(servers, target)) == 2)
    assert run.error is None
    assert customers(servers, target) == ["before", "after"]
    assert run.home.read().restarts >= 1


def test_a_second_runner_is_refused_while_the_first_writes_on(
    spark: Any, servers: str, name: str, tmp_path: Path
) -> None:
    source, target = kafka.create(servers), kafka.create(servers)
    made = copying(name, source, target)
    send(servers, source, [order("one", 1)])
    with Running(spark, made, servers, tmp_path) as first:
        eventually(lambda: customers(servers, target) == ["one"])
        with Running(spark, made, servers, tmp_path) as same_folder:
            same_folder.wait()
        assert "is running already" in str(same_folder.error)
        with Running(spark, made, servers, tmp_path / "elsewhere") as other_folder:
            other_folder.wait()
        said = f"pipeline '{name}' has written to this cluster before, up to batch 0, with another checkpoint"
        assert str(other_folder.error).startswith(said)
        send(servers, source, [order("two", 1)])
        eventually(lambda: customers(servers, target) == ["one", "two"])
    assert first.error is None


def _wrong_column(topics: Any) -> Any:
    return topics.stream("orders", ORDERS).select("colour")


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (_wrong_column, "the query is wrong: A column, variable, or function parameter with name `colour` cannot be"),
        (lambda topics: topics.stream("no-such-topic"), "there is no topic 'no-such-topic'"),
        (lambda topics: topics.stream("orders", "euro doubble"), "'euro doubble' is no list of columns"),
        (
            lambda topics: topics.stream("orders", maxOfsets=1),
            "the source has no option maxofsets: did you mean maxOffsetsPerTrigger?",
        ),
        (lambda topics: None, "must return a DataFrame, or several as {topic: DataFrame}, but returned nothing"),
        (lambda topics: topics.streams("orders"), "AttributeError: 'Topics' object has no attribute 'streams'"),
        (lambda topics: topics.stream("orders") / 0, "TypeError: unsupported operand"),
        (lambda topics: [], "but returned an empty list"),
        (lambda topics: {}, "but returned an empty dict"),
        (lambda topics: [topics.stream("orders")], "but returned a list with a DataFrame in it"),
        (lambda topics: {7: topics.stream("orders")}, "returned 7 in the place of a topic's name"),
        (
            lambda topics: topics.stream("orders", ORDERS, expect={"unlucky": "rand() < 0.5"}),
            "the rule 'rand() < 0.5' (unlucky) may say another thing each time",
        ),
        (lambda topics: topics.table("orders", ORDERS), "returned a DataFrame that is not a stream"),
        (lambda topics: {"gone": topics.stream("orders")}, "there is no topic 'gone'"),
    ],
)
def test_what_cannot_work_is_one_sentence_and_no_restart(
    spark: Any, servers: str, name: str, tmp_path: Path, build: Any, said: str
) -> None:
    for topic in ("orders", "out"):
        if not kafka.exists(servers, topic):
            kafka.create(servers, name=topic)
    send(servers, "orders", [order("c", 1)])
    with Running(spark, Pipeline(name, build, to="out"), servers, tmp_path, once=True) as run:
        run.wait()
    assert isinstance(run.error, OttlaError)
    assert said in str(run.error)
    assert "\n" not in str(run.error)
    assert run.heard.events[-1] == "failed"
    assert "restarting" not in run.heard.events


def _by_pattern(topics: Any) -> Any:
    """A source that the pipeline makes itself."""
    options = {"kafka.bootstrap.servers": topics.servers, "subscribePattern": "ord.+", "startingOffsets": "earliest"}
    return topics.spark.readStream.format("ottla").options(**options).load().select("value")


_IN_SQL = """
-- stream: orders
select key, value, topic from orders where value is not null
"""
_OWN_TOPIC = "does not say where its rows go, and their column 'topic' is the topic that they were read from"


@pytest.mark.parametrize(
    ("settings", "build", "said"),
    [
        ({}, lambda topics: topics.stream("orders"), _OWN_TOPIC),
        ({}, _IN_SQL, _OWN_TOPIC),
        ({"to": "orders"}, lambda topics: topics.stream("orders"), "would write to 'orders', which it reads"),
        ({"to": "orders"}, _by_pattern, "would write to 'orders', which it reads"),
        ({}, lambda topics: {"out": topics.stream("other"), "other": topics.stream("orders")}, "write to 'other'"),
        ({"to": "out", "dead_letters": "orders"}, lambda topics: topics.stream("orders", ORDERS), "its dead letters"),
        (
            {},
            lambda topics: topics.stream("orders").selectExpr("value", "concat('ord', 'ers') as topic"),
            "would write to a topic which it reads, and never come to an end: a row has the topic 'orders'.",
        ),
    ],
)
def test_a_pipeline_that_would_read_what_it_writes_is_refused(
    spark: Any, servers: str, name: str, tmp_path: Path, settings: dict[str, Any], build: Any, said: str
) -> None:
    for topic in ("orders", "other", "out"):
        if not kafka.exists(servers, topic):
            kafka.create(servers, name=topic)
    send(servers, "orders", [order("c", 1)])
    before = len(read(servers, "orders"))
    if isinstance(build, str):
        (tmp_path / f"{name}.sql").write_text(build)
        made = load(tmp_path / f"{name}.sql")
    else:
        made = Pipeline(name, lambda topics: build(_with(topics, servers)), **settings)
    with Running(spark, made, servers, tmp_path, once=True) as run:
        run.wait()
    assert said in str(run.error)
    assert "\n" not in str(run.error)
    assert "restarting" not in run.heard.events
    assert len(read(servers, "orders")) == before


def _with(topics: Any, servers: str) -> Any:
    topics.servers = servers
    return topics


def test_rows_may_name_topics_that_are_not_read(spark: Any, servers: str, name: str, tmp_path: Path) -> None:
    source, target = kafka.create(servers), kafka.create(servers)
    send(servers, source, [b"one"])
    made = Pipeline(name, lambda topics: topics.stream(source).selectExpr("value", f"'{target}' as topic"))
    with Running(spark, made, servers, tmp_path, once=True) as run:
        run.wait()
    assert run.error is None
    assert [value for _, value, _ in read(servers, target)] == [b"one"]


def test_a_missing_output_and_a_wrong_address_are_told_before_spark_is_asked(
    servers: str, name: str, tmp_path: Path
) -> None:
    made = Pipeline(name, lambda topics: None, to="no-such-output")
    with Running(None, made, servers, tmp_path) as run:
        run.wait()
    assert "there is no topic 'no-such-output'" in str(run.error)
    assert "restarting" not in run.heard.events
    short = {"once": True, "pause_s_first": 0.01}
    with Running(None, replace(made, name=f"{name}-b"), "127.0.0.1:1", tmp_path, **short) as run:
        run.wait()
    assert "cannot reach any broker at 127.0.0.1:1" in str(run.error)
    assert str(run.error).endswith("`ottla start`. This was try 6.")
    with Running(None, replace(made, name=f"{name}-c"), "127.0.0.1:1", tmp_path, master="sc://host") as remote:
        remote.wait()
    assert "Spark Connect is not supported" in str(remote.error)
    assert run.heard.events.count("restarting") == ONCE_FAILURES_MAX


def test_data_that_were_deleted_before_they_were_read_end_the_pipeline(
    spark: Any, servers: str, name: str, tmp_path: Path
) -> None:
    source, target = kafka.create(servers), kafka.create(servers)
    made = copying(name, source, target)
    send(servers, source, [order(f"c{number}", 1) for number in range(5)])
    with Running(spark, made, servers, tmp_path, once=True) as run:
        run.wait()
    send(servers, source, [order("lost", 1), order("last", 1)])
    kafka.delete_before(servers, source, 6)
    with Running(spark, made, servers, tmp_path, once=True) as run:
        run.wait()
    assert "data were lost" in str(run.error)
    assert "restarting" not in run.heard.events


def test_a_sql_file_runs_as_a_python_file_does(spark: Any, servers: str, name: str, tmp_path: Path) -> None:
    source, table, target = (kafka.create(servers) for _ in range(3))
    send(servers, table, [b'{"customer": "a", "country": "x"}'])
    send(servers, source, [order("a", 1), order("a", 2), order("a", -1)])
    file = tmp_path / f"{name}.sql"
    file.write_text(
        f"""
        -- to: {target}
        -- key: country
        -- mode: update
        -- stream: {source} as orders ({ORDERS})
        -- expect: orders euro >= 0 else below zero
        -- table: {table} as customers (customer string, country string)
        select country, sum(euro) as euro from orders join customers using (customer) group by country
        """
    )
    with Running(spark, load(file), servers, tmp_path, once=True) as run:
        run.wait()
    assert run.error is None
    assert [(key, json.loads(value or b"")) for key, value, _ in read(servers, target)] == [
        (b"x", {"country": "x", "euro": 3.0})
    ]
    assert run.home.read().dead_letters == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "select customer,\n  colour\nfrom orders",
            "line 6: A column, variable, or function parameter with name `colour`",
        ),
        ("select customer\nform orders where euro > 0", "line 6: Syntax error at or near 'orders'"),
        ("select customer from order", "line 5: The table or view `order` cannot be found"),
        ("-- watermark: orders hour 1 minute\nselect 1 from orders", "line 5: A column, variable, or function"),
        ("-- expect: orders colour > 1 else no\nselect 1 from orders", "line 5: A column, variable, or function"),
        ("-- table: others (euro doubble)\nselect 1 from orders", "line 5: 'euro doubble' is no list of columns"),
    ],
)
def test_what_is_wrong_with_a_sql_file_is_told_with_its_line(
    spark: Any, servers: str, name: str, tmp_path: Path, text: str, said: str
) -> None:
    file = tmp_path / "wrong.sql"
    file.write_text(f"\n-- Orders.\n-- to: out\n-- stream: orders ({ORDERS})\n{text}")
    with pytest.raises(OttlaError) as caught:
        make_plan(spark, load(file), {"kafka.bootstrap.servers": servers})
    assert str(caught.value).startswith(f"{file}, {said}")
    assert "\n" not in str(caught.value)
    assert "pos " not in str(caught.value)


def test_a_reset_starts_over_after_what_is_there(spark: Any, servers: str, name: str, tmp_path: Path) -> None:
    source, target = kafka.create(servers), kafka.create(servers)
    made = copying(name, source, target)
    send(servers, source, [order("one", 1)])
    with Running(spark, made, servers, tmp_path, once=True) as run:
        run.wait()
    again = Running(spark, made, servers, tmp_path, once=True)
    again.runner.reset()
    with again:
        again.wait()
    assert again.error is None
    assert customers(servers, target) == ["one", "one"]


def test_a_checkpoint_that_was_deleted_is_not_started_over_silently(
    spark: Any, servers: str, name: str, tmp_path: Path
) -> None:
    source, target = kafka.create(servers), kafka.create(servers)
    made = copying(name, source, target)
    send(servers, source, [order("one", 1)])
    with Running(spark, made, servers, tmp_path, once=True) as run:
        run.wait()
    shutil.rmtree(run.home.checkpoint)
    with Running(spark, made, servers, tmp_path, once=True) as run:
        run.wait()
    assert "or start over with --reset" in str(run.error)
    assert customers(servers, target) == ["one"]


def test_the_example_in_sql_counts_orders_in_windows(spark: Any, servers: str, tmp_path: Path) -> None:
    for topic in ("shop-orders", "shop-customers", "sales-by-country-sql"):
        kafka.create(servers, name=topic)
    send(servers, "shop-customers", [b'{"customer": 1, "name": "Ama", "country": "Ghana"}'])
    times = ("2026-01-01T10:00:01Z", "2026-01-01T10:00:09Z", "2026-01-01T10:00:10Z")
    rows = [{"order": at, "customer": 1, "euro": 2.5, "at": at} for at in times]
    send(servers, "shop-orders", [json.dumps(row).encode() for row in rows])
    example = load(REPO_ROOT / "examples" / "sales_by_country.sql")
    with Running(spark, example, servers, tmp_path, once=True) as run:
        run.wait()
    assert run.error is None
    counted = [json.loads(value or b"") for _, value, _ in read(servers, "sales-by-country-sql")]
    found = {row["window"]: (row["country"], row["orders"], row["euro"]) for row in counted}
    assert found == {
        "2026-01-01T10:00:00.000Z": ("Ghana", 2, 5.0),
        "2026-01-01T10:00:10.000Z": ("Ghana", 1, 2.5),
    }
