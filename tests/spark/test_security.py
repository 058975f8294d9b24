"""Spark into secured clusters: source, sinks and runner, over TLS to Ottla and over SASL_SSL to Apache Kafka."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import ottla.spark
from ottla.common.errors import OttlaError
from ottla.spark.pipeline.home import FINISHED, Home
from ottla.spark.pipeline.runner import Runner, RunSettings
from ottla.spark.sink.marker import digest_of
from ottla.testing import Broker, Security
from tests.spark import topics
from tests.spark.pipeline.conftest import Heard, order
from tests.spark.pipeline.test_runner import copying, customers, send
from tests.spark.reading import committed_records
from tests.support.certificates import Certificates
from tests.support.kafka_jars import require_kafka_libs
from tests.support.process import free_ports
from tests.support.proxy import Proxy
from tests.support.secured_kafka import MODULES, PASSWORD, USER, SecuredKafka

NOW = {"availableNow": True}
PASSWORD_OF_ETL = "not for others"
SECRET_PART = PASSWORD.rpartition('"')[2]  # the same however quotes are escaped


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def proxy(certificates: Certificates) -> Iterator[Proxy]:
    with Proxy(tls=certificates.server(certificates.issue("127.0.0.1"))) as running:
        yield running


@pytest.fixture(scope="module")
def servers(proxy: Proxy) -> Iterator[str]:
    """Those of a plain listener; what `proxy` speaks is all that Spark gets to see."""
    proxy.target, inside = free_ports(2)
    listeners = {
        "listeners": f"PLAINTEXT://127.0.0.1:{proxy.target},INSIDE://127.0.0.1:{inside}",
        "advertised.listeners": f"PLAINTEXT://{proxy.address}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INSIDE:PLAINTEXT",
    }
    with Broker(listeners):
        yield f"127.0.0.1:{inside}"


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    require_kafka_libs()
    with SecuredKafka(tmp_path_factory.mktemp("kafka")) as running:
        yield running


def options(address: str, settings: Mapping[str, str]) -> dict[str, str]:
    return {"kafka.bootstrap.servers": address, **{f"kafka.{name}": value for name, value in settings.items()}}


def eventually(look: Callable[[], Any], expected: Any) -> None:
    """Kafka answers a commit once it is decided, and its markers follow: till then readers wait."""
    deadline = time.monotonic() + 60
    while (found := look()) != expected:
        assert time.monotonic() < deadline, found
        time.sleep(0.1)


def read_write_and_stream(spark: Any, plain: str, address: str, settings: Mapping[str, str], folder: Path) -> None:
    """Everything that connects: the source, the batch sink, the streaming sink, its tasks, and what asks about it."""
    source, copied, streamed = (topics.create(plain, 2) for _ in range(3))
    topics.produce(plain, source, range(200), 2)
    given = options(address, settings)
    batch = spark.read.format("ottla").options(**given, subscribe=source).load()
    assert topics.numbers(batch.collect()) == list(range(200))
    assert SECRET_PART not in batch._jdf.queryExecution().toString()
    batch.select("key", "value").write.format("ottla").mode("append").options(**given, topic=copied).save()
    eventually(lambda: len(committed_records(plain, copied)), 200)
    name = f"secured-{streamed}"
    stream = spark.readStream.format("ottla").options(**given, subscribe=source, startingOffsets="earliest").load()
    # Topics of a column are looked up by the tasks.
    ottla.spark.write_stream(
        stream.selectExpr("key", "value", f"'{streamed}' as topic"),
        name=name,
        bootstrap=address,
        kafka=settings,
        checkpoint=str(folder / "checkpoint"),
        trigger=NOW,
    ).awaitTermination()
    eventually(lambda: len(committed_records(plain, streamed)), 200)

    def published() -> Any:
        marker = ottla.spark.published(name=name, bootstrap=address, kafka=settings)
        return marker and marker.digest

    eventually(published, digest_of({source: {"0": 100, "1": 100}}))
    offsets = ottla.spark.committed_offsets(group=name, bootstrap=address, kafka=given)
    assert offsets == f'{{"{source}": {{"0": 100, "1": 100}}}}'
    ottla.spark.forget(name=name, bootstrap=address, kafka=settings)
    eventually(published, None)


def test_over_tls(spark: Any, servers: str, proxy: Proxy, certificates: Certificates, tmp_path: Path) -> None:
    settings = {"security.protocol": "SSL", "ssl.truststore.certificates": certificates.ca.read_text()}
    read_write_and_stream(spark, servers, proxy.address, settings, tmp_path)


def test_a_cluster_that_is_not_trusted_is_one_sentence(spark: Any, servers: str, proxy: Proxy, tmp_path: Path) -> None:
    source = topics.create(servers)
    given = options(proxy.address, {"security.protocol": "SSL"})
    with pytest.raises(Exception, match="is from nobody we trust"):
        spark.read.format("ottla").options(**given, subscribe=source).load().collect()
    stream = spark.readStream.format("ottla").options(**given, subscribe=source).load()
    with pytest.raises(OttlaError, match="is from nobody we trust"):
        ottla.spark.write_stream(
            stream, name="x", bootstrap=proxy.address, kafka=given, topic=source, checkpoint=str(tmp_path)
        )


class TestOnASecuredOttla:
    """Logins over TLS, an authorizer, and certificates as text: executors have no files of the driver."""

    @pytest.fixture(scope="class")
    def broker(self) -> Iterator[tuple[Broker, str]]:
        outside, inside = free_ports(2)
        listeners = {
            "listeners": f"SASL_SSL://127.0.0.1:{outside},INSIDE://127.0.0.1:{inside}",
            "listener.security.protocol.map": "SASL_SSL:SASL_SSL,INSIDE:PLAINTEXT",
            "super.users": "User:etl;User:ANONYMOUS",
            "connections.max.reauth.ms": "10000",
        }
        with Broker(listeners, security=Security(users={"etl": PASSWORD_OF_ETL}, acls=True)) as running:
            yield running, f"127.0.0.1:{inside}"

    @staticmethod
    def settings(broker: Broker) -> dict[str, str]:
        given = broker.java_settings()
        del given["bootstrap.servers"]
        authority = Path(given.pop("ssl.truststore.location")).read_text()
        return {**given, "ssl.truststore.certificates": authority}

    def test_source_and_sinks(self, spark: Any, broker: tuple[Broker, str], tmp_path: Path) -> None:
        running, plain = broker
        read_write_and_stream(spark, plain, running.bootstrap_servers, self.settings(running), tmp_path)

    def test_a_pipeline(self, spark: Any, broker: tuple[Broker, str], tmp_path: Path) -> None:
        running, plain = broker
        source, target = topics.create(plain), topics.create(plain)
        send(plain, source, [order("good", 1), b"not JSON", order("fine", 2)])
        pipeline = copying("secured-ottla", source, target)
        client = options(running.bootstrap_servers, self.settings(running))
        home = Home(tmp_path, pipeline.name)
        settings = RunSettings(client, once=True)
        assert PASSWORD_OF_ETL not in repr(settings)
        Runner(pipeline, settings, home, Heard(), sessions=lambda: spark).run()
        assert home.read().state == FINISHED
        eventually(lambda: customers(plain, target), ["good", "fine"])


@pytest.mark.jvm
@pytest.mark.slow
class TestOnKafka:
    def test_by_the_names_of_java(self, spark: Any, kafka: SecuredKafka, tmp_path: Path) -> None:
        escaped = PASSWORD.replace('"', '\\"')
        settings = {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.jaas.config": f'{MODULES["SCRAM-SHA-512"]} required username="{USER}" password="{escaped}";',
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(kafka.certificates.ca),
        }
        read_write_and_stream(spark, kafka.bootstrap, kafka.address("SASL_SSL"), settings, tmp_path)

    def test_the_runner_by_the_names_of_librdkafka(self, spark: Any, kafka: SecuredKafka, tmp_path: Path) -> None:
        source, target = topics.create(kafka.bootstrap), topics.create(kafka.bootstrap)
        send(kafka.bootstrap, source, [order("good", 1), b"not JSON", order("fine", 2)])
        pipeline = copying("secured", source, target)
        home = Home(tmp_path, pipeline.name)

        def runner(password: str) -> Runner:
            given = kafka.settings("SASL_SSL", "PLAIN", password)
            client = {f"kafka.{name}": value for name, value in given.items()}
            assert password not in repr(RunSettings(client))
            return Runner(pipeline, RunSettings(client, once=True), home, Heard(), sessions=lambda: spark)

        with pytest.raises(OttlaError, match=f"did not let '{USER}' in by PLAIN: Authentication failed"):
            runner("wrong").run()
        runner(PASSWORD).run()
        assert home.read().state == FINISHED
        eventually(lambda: customers(kafka.bootstrap, target), ["good", "fine"])
        runner(PASSWORD).reset()
