"""Java's client on secured brokers, with right and wrong proofs of who it is."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ottla.testing import Broker
from tests.interop.foreign.agents import AgentError
from tests.interop.foreign.clients import Client, Sent

pytestmark = pytest.mark.jvm
SENT = Sent(None, b"hello")


def settings_of(broker: Broker) -> dict[str, str]:
    return {name.replace(".", "_"): value for name, value in broker.java_settings().items() if "servers" not in name}


@pytest.mark.parametrize("protocol", ["SSL", "SASL_PLAINTEXT", "SASL_SSL"])
def test_java_gets_in_with_its_settings(clients: Callable[[str], Client], protocol: str) -> None:
    java = clients("java")
    with Broker(security=protocol) as broker:
        broker.create_topic("orders")
        java.produce(broker.bootstrap_servers, "orders", [SENT], **settings_of(broker))
        (record,) = java.consume(broker.bootstrap_servers, "orders", 1, **settings_of(broker))
        assert record.value == b"hello"


def test_java_does_not_get_in_with_another_password(clients: Callable[[str], Client]) -> None:
    java = clients("java")
    with Broker(security="SASL_SSL") as broker:
        broker.create_topic("orders")
        wrong = settings_of(broker)
        wrong["sasl_jaas_config"] = wrong["sasl_jaas_config"].replace("test-secret", "another")
        with pytest.raises(AgentError, match="Authentication"):
            java.produce(broker.bootstrap_servers, "orders", [SENT], **wrong)
