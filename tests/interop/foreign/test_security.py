"""Clients of other languages write and read on secured brokers; who is let in at all says `test_logins.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ottla.testing import Broker
from tests.interop.foreign.agents import AgentError
from tests.interop.foreign.clients import Client, Sent
from tests.support.certificates import Certificates

SENT = Sent(None, b"hello")
PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
MECHANISMS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
others = pytest.mark.parametrize("name", ["franz-go", "kafkajs"])


def settings_of(broker: Broker) -> dict[str, str]:
    return {name.replace(".", "_"): value for name, value in broker.java_settings().items() if "servers" not in name}


@pytest.mark.jvm
@pytest.mark.parametrize("protocol", ["SSL", "SASL_PLAINTEXT", "SASL_SSL"])
def test_java_gets_in_with_its_settings(clients: Callable[[str], Client], protocol: str) -> None:
    java = clients("java")
    with Broker(security=protocol) as broker:
        broker.create_topic("orders")
        java.produce(broker.bootstrap_servers, "orders", [SENT], **settings_of(broker))
        (record,) = java.consume(broker.bootstrap_servers, "orders", 1, **settings_of(broker))
        assert record.value == b"hello"


@pytest.mark.jvm
def test_java_does_not_get_in_with_another_password(clients: Callable[[str], Client]) -> None:
    java = clients("java")
    with Broker(security="SASL_SSL") as broker:
        broker.create_topic("orders")
        wrong = settings_of(broker)
        wrong["sasl_jaas_config"] = wrong["sasl_jaas_config"].replace("test-secret", "another")
        with pytest.raises(AgentError, match="Authentication"):
            java.produce(broker.bootstrap_servers, "orders", [SENT], **wrong)


# --- Go and Node


class Secured:
    """A SASL_SSL listener with all mechanisms, for which `settings` are a client's, under librdkafka's names."""

    def __init__(self, folder: Path) -> None:
        self._certificates = Certificates(folder)
        self.broker = Broker(
            {
                "listeners": "SASL_SSL://127.0.0.1:0",
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": str(self._certificates.issue("127.0.0.1", "localhost")),
                "sasl.enabled.mechanisms": ",".join(MECHANISMS),
                "listener.name.sasl_ssl.plain.sasl.jaas.config": f'{PLAIN_MODULE} required user_ada="secret";',
                "ottla.first.users": ";".join(f"{name}=[name=ada,password=secret]" for name in MECHANISMS[1:]),
            }
        )

    def settings(self, mechanism: str) -> dict[str, str]:
        return {
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(self._certificates.ca),
            "sasl.mechanism": mechanism,
            "sasl.username": "ada",
            "sasl.password": "secret",
        }


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    made = Secured(tmp_path_factory.mktemp("secured"))
    with made.broker:
        yield made


@pytest.mark.slow
@others
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_client_gets_in_over_tls(
    clients: Callable[[str], Client], secured: Secured, name: str, mechanism: str
) -> None:
    client, bootstrap, topic = clients(name), secured.broker.bootstrap_servers, f"{name}-{mechanism}"
    settings = {key.replace(".", "_"): value for key, value in secured.settings(mechanism).items()}
    secured.broker.create_topic(topic)
    client.produce(bootstrap, topic, [SENT], **settings)
    (record,) = client.consume(bootstrap, topic, 1, **settings)
    assert record.value == b"hello"
