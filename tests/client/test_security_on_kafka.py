"""TLS and SASL as Apache Kafka has them: every protocol and mechanism, and what a client that is wrong is told."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

import pytest

from ottla.client.access.security import AccessRefused
from ottla.client.access.security_settings import MECHANISMS
from ottla.client.cluster import ClusterClient
from ottla.client.fetching import OffsetRange
from ottla.client.lookup import LATEST, ClusterReader
from ottla.client.producing import TransactionalProducer
from ottla.client.settings import ClientSettings, parse_settings
from ottla.common.ids import TopicPartition
from tests.cli.command import Cli
from tests.client.test_fetching import values
from tests.client.test_producing import batch, committed_values
from tests.spark import topics
from tests.support.kafka_jars import require_kafka_libs
from tests.support.secured_kafka import MODULES, PASSWORD, SESSION_MS, USER, SecuredKafka

pytestmark = [pytest.mark.jvm, pytest.mark.xdist_group("secured-kafka")]

OUT = TopicPartition("out", 0)


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    require_kafka_libs()
    with SecuredKafka(tmp_path_factory.mktemp("kafka")) as running:
        topics.create(running.bootstrap, name=OUT.topic)
        yield running


def parsed(given: Mapping[str, str]) -> ClientSettings:
    return parse_settings({f"kafka.{name}": value for name, value in given.items()})


def write_and_read(settings: ClientSettings, value: bytes) -> None:
    """A transaction, then all records, until that one is among them."""
    with ClusterClient(settings.address) as cluster:
        producer = TransactionalProducer(cluster, f"writer-{value.decode()}")
        producer.start()
        producer.begin()
        producer.produce([(OUT, batch(value))])
        producer.commit()
        producer.close()
    with ClusterReader(settings) as reader:
        wait_for(reader, value)


def wait_for(reader: ClusterReader, value: bytes, count: int = 1) -> None:
    """Kafka answers a commit once it is decided, and its markers follow: till then readers wait."""
    deadline = time.monotonic() + 60
    while True:
        end = reader.offsets({OUT: LATEST})[OUT]
        if values(reader, OffsetRange(*OUT, 0, end)).get(str(OUT), []).count(value) == count:
            return
        assert time.monotonic() < deadline, f"{value!r} is not there"
        time.sleep(0.05)


def refusal(given: Mapping[str, str]) -> str:
    with pytest.raises(AccessRefused) as refused, ClusterReader(parsed(given)) as reader:
        reader.topic_names()
    assert PASSWORD not in str(refused.value)
    return str(refused.value)


def test_every_mechanism_over_tls_and_without(kafka: SecuredKafka) -> None:
    for protocol in ("SASL_SSL", "SASL_PLAINTEXT"):
        for mechanism in MECHANISMS:
            value = f"{protocol}-{mechanism}".encode()
            write_and_read(parsed(kafka.settings(protocol, mechanism)), value)
            assert value in committed_values(kafka.bootstrap, OUT.topic, 1)


def test_names_of_java(kafka: SecuredKafka) -> None:
    escaped = PASSWORD.replace('"', '\\"')
    given = {
        "bootstrap.servers": kafka.address("SASL_SSL"),
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.jaas.config": f'{MODULES["SCRAM-SHA-256"]} required username="{USER}" password="{escaped}";',
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": kafka.certificates.ca.read_text(),
    }
    write_and_read(parsed(given), b"java")


def test_a_certificate_is_enough_where_it_is_asked_for(kafka: SecuredKafka) -> None:
    given = {
        "bootstrap.servers": kafka.address("SSL"),
        "security.protocol": "SSL",
        "ssl.ca.location": str(kafka.certificates.ca),
    }
    me = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(kafka.identity)}
    write_and_read(parsed({**given, **me}), b"certificate")
    assert "does not accept the certificate of this client, or wants one" in refusal(given)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_wrong_password_is_told_at_once(kafka: SecuredKafka, mechanism: str) -> None:
    said = refusal(kafka.settings("SASL_SSL", mechanism, "wrong"))
    assert f"did not let '{USER}' in by {mechanism}: Authentication failed" in said


def test_a_client_that_says_nothing_about_security(kafka: SecuredKafka) -> None:
    def plain(protocol: str) -> str:
        return refusal({"bootstrap.servers": kafka.address(protocol)})

    assert "speaks TLS there" in plain("SASL_SSL")
    assert "speaks TLS there" in plain("SSL")
    wanted = "wants SASL: set security.protocol to SASL_PLAINTEXT, and sasl.mechanism to one that it has (PLAIN, SCRAM"
    assert wanted in plain("SASL_PLAINTEXT")


def test_a_client_that_says_the_wrong_thing_about_security(kafka: SecuredKafka) -> None:
    here = {"bootstrap.servers": kafka.bootstrap}
    assert "speaks plain text there" in refusal({**kafka.settings("SASL_SSL"), **here})
    assert "asks nobody for SASL there" in refusal({**kafka.settings("SASL_PLAINTEXT"), **here})
    tls_only = {**kafka.settings("SASL_SSL"), "security.protocol": "SSL"}
    assert "wants SASL: set security.protocol to SASL_SSL" in refusal(tls_only)
    assert "from nobody we trust" in refusal({**kafka.settings("SASL_SSL"), "ssl.ca.location": "probe"})


def test_a_session_that_ends_is_followed_by_another(kafka: SecuredKafka) -> None:
    settings = parsed(kafka.settings("SASL_PLAINTEXT", "SCRAM-SHA-256"))
    with ClusterClient(settings.address) as cluster, ClusterReader(settings) as reader:
        producer = TransactionalProducer(cluster, "writer-sessions")
        producer.start()
        first = reader.any_broker()
        for _ in range(2):
            producer.begin()
            producer.produce([(OUT, batch(b"session"))])
            producer.commit()
            time.sleep(1.5 * SESSION_MS / 1000)
        wait_for(reader, b"session", 2)
        assert reader.any_broker() is not first
        producer.close()


def test_the_command_line_takes_what_librdkafka_takes(kafka: SecuredKafka) -> None:
    given = kafka.settings("SASL_SSL", "SCRAM-SHA-256")
    write_and_read(parsed(given), b"command")
    cli = Cli(given.pop("bootstrap.servers"))
    flags = [part for name, value in given.items() for part in ("-X", f"{name}={value}")]
    assert OUT.topic in cli.ok("topic", "list", *flags).out
    found = cli.ok("txn", "list", "--output", "json", *flags).data
    assert "writer-command" in [one["transactional_id"] for one in found]
    assert "did not let 'ada' in" in cli.fails(1, "txn", "list", *flags, "-X", "sasl.password=wrong")
