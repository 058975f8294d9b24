"""Two workers over HTTPS with logins, on clusters that ask for TLS, SASL and ACLs: Ottla's and Apache Kafka's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from tests.connect.conftest import MakeConnect
from tests.connect.test_connectors import eventually
from tests.support.certificates import Certificates
from tests.support.kafka_jars import require_kafka_libs
from tests.support.secured_kafka import AUTHORIZER, USER, SecuredKafka

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def grant(admin: Mapping[str, str], user: str) -> None:
    """What docs/connect.md says that a worker needs."""
    prefixed = [
        (ResourceType.TOPIC, "sec-"),
        (ResourceType.GROUP, "sec-"),
        (ResourceType.GROUP, "connect-"),
        (ResourceType.TRANSACTIONAL_ID, "sec-"),
        (ResourceType.TRANSACTIONAL_ID, "connect-cluster-sec-"),
    ]
    rules = [
        AclBinding(
            kind, name, ResourcePatternType.PREFIXED, f"User:{user}", "*", AclOperation.ALL, AclPermissionType.ALLOW
        )
        for kind, name in prefixed
    ]
    client = AdminClient(dict(admin))
    for made in client.create_acls(rules).values():
        made.result(30)


def lines_come_through(
    bootstrap: str, client: Mapping[str, str], make_connect: MakeConnect, folder: Path, certificates: Certificates
) -> None:
    credentials = folder / "credentials.properties"
    credentials.write_text("anna=s3cret\n")
    settings = {
        **client,
        "group.id": "sec-workers",
        **{f"{one}.storage.topic": f"sec-{one}" for one in ("config", "offset", "status")},
        "listeners": "https://127.0.0.1:0",
        "listeners.https.ssl.keystore.type": "PEM",
        "listeners.https.ssl.keystore.location": str(certificates.issue("127.0.0.1")),
        "listeners.https.ssl.truststore.type": "PEM",
        "listeners.https.ssl.truststore.location": str(certificates.ca),
        "rest.extension.classes": "BasicAuthSecurityRestExtension",
        "ottla.rest.credentials.file": str(credentials),
    }
    login = ("anna", "s3cret")
    first = make_connect(bootstrap, login=login, **settings)
    second = make_connect(bootstrap, login=login, **settings)
    assert first.url.startswith("https://")
    source, target = folder / "in.txt", folder / "out.txt"
    source.write_text("one\ntwo\n")
    # One of the two has to forward; each tells the leader how many tasks there are.
    first.create("sec-src", connector_class="FileStreamSource", file=source, topic="sec-lines")
    second.create("sec-snk", connector_class="FileStreamSink", file=target, topics="sec-lines")
    eventually(lambda: target.read_text() if target.exists() else "", lambda text: text == "one\ntwo\n")
    for name in ("sec-src", "sec-snk"):
        first.wait_for(name, "RUNNING")
        eventually(lambda name=name: second.ask("GET", f"/connectors/{name}/tasks")[1], lambda tasks: len(tasks) == 1)


def test_on_ottla(make_connect: MakeConnect, tmp_path: Path) -> None:
    from ottla.testing import Broker, Security

    users = {"root": "r00t", "worker": "w0rd"}
    with Broker(security=Security("SASL_SSL", users=users, acls=True)) as broker:
        grant(broker.client_settings("root"), "worker")
        client = broker.java_settings("worker")
        lines_come_through(client.pop("bootstrap.servers"), client, make_connect, tmp_path, Certificates(tmp_path))
        make_connect.stop()


@pytest.mark.jvm
def test_on_apache_kafka(make_connect: MakeConnect, tmp_path: Path) -> None:
    require_kafka_libs()
    with SecuredKafka(tmp_path / "kafka", AUTHORIZER) as kafka:
        grant({"bootstrap.servers": kafka.bootstrap}, USER)
        client = kafka.settings("SASL_SSL")
        lines_come_through(client.pop("bootstrap.servers"), client, make_connect, tmp_path, kafka.certificates)
        make_connect.stop()
