"""`Broker(security=...)`: who gets in, and what a test can do with it."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from ottla.client.access.security import AccessRefused
from ottla.client.access.security_settings import parse_security
from ottla.client.connection import BrokerConnection
from ottla.common.certificates import Authority
from ottla.common.errors import OttlaError
from ottla.protocol.messages import MetadataRequest
from ottla.testing import Broker, Security
from tests.support.refusals import refusals


@pytest.mark.parametrize("protocol", ["SSL", "SASL_PLAINTEXT", "SASL_SSL"])
def test_clients_with_its_settings_get_in(protocol: str) -> None:
    with Broker(security=protocol) as broker:
        broker.produce("orders", "hello")
        assert [record.text for record in broker.records("orders", count=1)] == ["hello"]
        host, _, port = broker.bootstrap_servers.partition(":")
        java = parse_security(broker.java_settings())
        BrokerConnection(host, int(port), timeout_s=10, security=java).close()
        with (
            pytest.raises((AccessRefused, OSError)),
            BrokerConnection(host, int(port), timeout_s=10) as stranger,
        ):
            stranger.call(MetadataRequest(topics=[]))
        broker.restart()
        assert [record.text for record in broker.records("orders", count=1)] == ["hello"]


def test_other_users_may_do_what_acls_allow() -> None:
    users = {"admin": "secret", "ada": "another"}
    with Broker(security=Security(users=users, acls=True)) as broker:
        broker.produce("orders", "hello")
        ada = AdminClient(broker.client_settings("ada"))
        assert "orders" not in ada.list_topics(timeout=10).topics
        with pytest.raises(OttlaError, match="no user 'eve': it has admin, ada"):
            broker.client_settings("eve")


@pytest.mark.parametrize(
    ("security", "said"),
    [("TLS", "SSL, SASL_PLAINTEXT or SASL_SSL"), ("PLAINTEXT", "SSL, SASL_PLAINTEXT or SASL_SSL")],
)
def test_what_is_no_security_is_refused(security: str, said: str) -> None:
    with pytest.raises(OttlaError, match=said):
        Broker(security=security)


def alter(admin: AdminClient, name: str, value: str, broker: str) -> None:
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.BROKER, broker, incremental_configs=[entry])
    (answer,) = admin.incremental_alter_configs([resource]).values()
    answer.result(30)


def test_settings_of_a_listener_are_changed_without_a_restart(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("renewed")
    authority = Authority.new("another", 1)
    (folder / "ca.pem").write_bytes(authority.issued.certificate_pem)
    (folder / "broker.pem").write_text(authority.issue("broker", 1, hosts=["127.0.0.1"]).pem)
    (folder / "odd.pem").write_bytes(
        authority.issue("a", 1).key_pem + authority.issue("b", 1, hosts=["127.0.0.1"]).certificate_pem
    )
    prefix = "listener.name.sasl_ssl."
    with Broker(security="SASL_SSL") as broker:
        broker.produce("orders", "hello")
        node = str(broker.server.broker.node_id)
        admin = AdminClient(broker.client_settings())
        for name, value, said in (
            ("ssl.keystore.location", str(folder / "broker.pem"), "only per-listener using the listener prefix"),
            (f"{prefix}ssl.keystore.location", str(folder / "odd.pem"), "the key must belong to the first certificate"),
            (f"{prefix}ssl.keystore.location", str(folder / "none.pem"), "No such file"),
            (f"{prefix}ssl.client.auth", "perhaps", "expected one of"),
            (f"{prefix}sasl.enabled.mechanisms", "MAGIC", "each one of PLAIN"),
            (f"{prefix}plain.sasl.jaas.confg", "x", "Unknown configuration property"),
        ):
            with pytest.raises(KafkaException, match=said):
                alter(admin, name, value, node)
        alter(admin, f"{prefix}ssl.keystore.location", str(folder / "broker.pem"), node)
        renewed = {**broker.client_settings(), "ssl.ca.location": str(folder / "ca.pem")}
        assert AdminClient(renewed).list_topics(timeout=20).brokers
        assert refusals(broker.client_settings())


def test_users_of_plain_are_changed_without_a_restart() -> None:
    module = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    name = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
    properties = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "PLAIN",
        name: f'{module} user_ada="old";',
        "connection.failed.authentication.delay.ms": "0",
    }

    def settings(broker: Broker, password: str) -> dict[str, str]:
        login = {"sasl.mechanism": "PLAIN", "sasl.username": "ada", "sasl.password": password}
        return {
            "bootstrap.servers": broker.bootstrap_servers,
            "security.protocol": "SASL_PLAINTEXT",
            "log_level": "0",
            **login,
        }

    with Broker(properties) as broker:
        admin = AdminClient(settings(broker, "old"))
        node = str(broker.server.broker.node_id)
        with pytest.raises(KafkaException, match="names no user"):
            alter(admin, name, f"{module};", node)
        alter(admin, name, f'{module} user_ada="new";', node)
        assert AdminClient(settings(broker, "new")).list_topics(timeout=20).brokers
        assert refusals(settings(broker, "old"))
        shown = admin.describe_configs([ConfigResource(ResourceType.BROKER, node)])
        (entries,) = (answer.result(30) for answer in shown.values())
        assert entries[name].is_sensitive and entries[name].value is None
        # What is stored is there again at the next start.
        broker.restart()
        assert AdminClient(settings(broker, "new")).list_topics(timeout=20).brokers
        producer = Producer(settings(broker, "new"))
        producer.produce("t", b"x")
        assert producer.flush(30) == 0
