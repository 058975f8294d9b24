"""The same console on Apache Kafka, and on three brokers of which one is killed: its pages, and a browser on them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.console.browser import Browser, browsing
from tests.console.daily_work import daily_work
from tests.console.running import RunningConsole, Visitor
from tests.console.test_pages import PAGES, found, until
from tests.support.kafka_jars import require_kafka_libs
from tests.support.kafka_peer import KafkaPeer
from tests.support.trio import OttlaTrio
from tests.support.zookeeper import why_no_zookeeper

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    require_kafka_libs()
    quick = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "4"}
    with KafkaPeer(tmp_path_factory.mktemp("kafka"), quick) as running:
        yield running.bootstrap


def work(visitor: Visitor, bootstrap: str, topic: str) -> None:
    """Create, produce, find, move offsets, delete."""
    assert "is there" in visitor.post("/topics", {"name": topic, "partitions": "2"}).text
    for number in range(5):
        fields = {"key": f"k{number}", "value": f'{{"n": {number}}}', "encoding": "json", "partition": str(number % 2)}
        assert "is in" in visitor.post(f"/topics/{topic}/produce", fields).text
    assert found(visitor, topic, where="value.n >= 3")[1]["matches"] == 2
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": f"g-{topic}"})
    consumer.commit(offsets=[TopicPartition(topic, 0, 2)], asynchronous=False)
    consumer.close()
    plan = visitor.get(f"/groups/g-{topic}/offsets?to=start").text
    move = plan.split('name="move" value="')[1].split('"')[0]
    assert "is moved in 1 partition." in visitor.post(f"/groups/g-{topic}/offsets", {"move": move}).text
    assert (
        "is 3600000 now"
        in visitor.post(f"/topics/{topic}/settings", {"setting": "retention.ms", "value": "3600000"}).text
    )
    assert "trimmed" in visitor.post(f"/topics/{topic}/trim", {"before": "all", "confirm": topic}).text
    assert found(visitor, topic)[1]["matches"] == 0
    assert "is deleted" in visitor.post(f"/topics/{topic}/delete", {"confirm": topic}).text


def look_at_every_page(browser: Browser, more: list[str]) -> None:
    for path in [*PAGES, *more]:
        browser.open(path)
        browser.one("main h1")
        assert "did not work" not in browser.text and browser.complaints() == [], path


@pytest.mark.jvm
def test_a_browser_on_apache_kafka(kafka: str, topic: str) -> None:
    with RunningConsole(kafka) as running, browsing(running.url) as browser:
        daily_work(browser, kafka, topic, f"g-{topic}")
        of_them = [
            f"/topics/{topic}{end}" for end in ("", "/records", "/settings", "/produce", "/manage", "/records/0/1")
        ]
        look_at_every_page(browser, [*of_them, f"/groups/g-{topic}", "/brokers/1"])


def test_a_browser_on_three_brokers_sees_one_go_and_come_back(tmp_path: Path, topic: str) -> None:
    if why_no_zookeeper():
        pytest.skip(str(why_no_zookeeper()))
    with OttlaTrio(tmp_path) as trio, RunningConsole(trio.bootstrap) as running, browsing(running.url) as browser:
        daily_work(browser, trio.bootstrap, topic, f"g-{topic}")
        of_them = [
            f"/topics/{topic}{end}" for end in ("", "/records", "/settings", "/produce", "/manage", "/records/0/1")
        ]
        look_at_every_page(browser, [*of_them, f"/groups/g-{topic}", "/brokers/1", "/brokers/2", "/brokers/3"])
        browser.open("/")
        browser.says("Healthy")
        # The page stays open: it sees the broker go and come back by itself.
        trio.nodes[2].kill()
        browser.says("Broker 2 is gone")
        trio.nodes[2].start()
        browser.until(lambda: "Broker 2 is gone" not in browser.text)
        look_at_every_page(browser, ["/brokers/2"])


@pytest.mark.jvm
def test_every_page_and_the_daily_work_on_apache_kafka(kafka: str, topic: str) -> None:
    with RunningConsole(kafka) as running:
        visitor = running.visitor()
        for path in [*PAGES, "/brokers/1"]:
            page = visitor.get(path)
            assert page.status_code == 200, (path, page.text)
        work(visitor, kafka, topic)
        assert running.console.seen().missing == {}


def test_a_broker_that_is_killed_is_seen_and_so_is_its_return(tmp_path: Path, topic: str) -> None:
    if why_no_zookeeper():
        pytest.skip(str(why_no_zookeeper()))
    with OttlaTrio(tmp_path) as trio, RunningConsole(trio.bootstrap) as running:
        admin = AdminClient({"bootstrap.servers": trio.bootstrap})
        admin.create_topics([NewTopic(topic, 3, 3)])[topic].result(60)
        producer = Producer({"bootstrap.servers": trio.bootstrap})
        producer.produce(topic, b"x")
        producer.flush(60)
        visitor = running.visitor()
        until(lambda: "Healthy" in visitor.get("/").text)
        work(visitor, trio.bootstrap, f"{topic}-2")
        trio.nodes[2].kill()
        until(lambda: "Broker 2 is gone" in visitor.get("/").text)
        assert "under-replicated" in visitor.get("/partitions?show=under").text
        assert visitor.get("/brokers/2").status_code == 404
        assert found(visitor, topic)[1]["matches"] == 1
        trio.nodes[2].start()
        until(lambda: "Broker 2 is gone" not in visitor.get("/").text)
        until(lambda: not running.console.seen().topics[topic].under_replicated)
        moved = visitor.post("/partitions/move", {"partition": f"{topic}-0", "replicas": "3,1"})
        assert "on its way" in moved.text
        until(lambda: set(running.console.seen().topics[topic].partitions[0].replicas) == {1, 3})
        assert "notice ok" in visitor.post("/partitions/elect", {"partition": f"{topic}-0"}).text
