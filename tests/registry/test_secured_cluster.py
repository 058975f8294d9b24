"""A registry that logs in to a cluster over TLS and SASL, with no more rights than the documentation says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from ottla.common.errors import OttlaError
from ottla.testing import Broker, Registry
from tests.registry.test_api import INT, MORE
from tests.support.certificates import Certificates

USERS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'user_admin="secret" user_registry="s3cret" user_stranger="secret";'
)
RIGHTS = [
    (ResourceType.TOPIC, "_schemas", tuple(AclOperation[name] for name in ("READ", "WRITE", "CREATE", "DESCRIBE"))),
    (ResourceType.GROUP, "schema-registry", (AclOperation.READ,)),
    (ResourceType.TRANSACTIONAL_ID, "_schemas-schema-registry", (AclOperation.WRITE,)),
]  # fmt: skip


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def secured(certificates: Certificates) -> Iterator[Broker]:
    properties = {
        "listeners": "SASL_SSL://127.0.0.1:0",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(certificates.issue("127.0.0.1")),
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": USERS,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin",
    }
    with Broker(properties) as broker:
        admin = AdminClient(
            {"bootstrap.servers": broker.bootstrap_servers, "log_level": 0} | login(certificates.ca, "admin", "secret")
        )
        rights = [
            AclBinding(kind, name, ResourcePatternType.LITERAL, "User:registry", "*", each, AclPermissionType.ALLOW)
            for kind, name, operations in RIGHTS
            for each in operations
        ]
        for future in admin.create_acls(rights).values():
            future.result(30)
        yield broker


def login(ca: Path, user: str, password: str) -> dict[str, str]:
    return {
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(ca),
        "sasl.mechanism": "PLAIN",
        "sasl.username": user,
        "sasl.password": password,
    }


def test_the_registry_works_with_the_rights_that_the_documentation_names(
    secured: Broker, certificates: Certificates
) -> None:
    client = login(certificates.ca, "registry", "s3cret")
    for expected in (1, 2):  # the second one finds the topic there
        with (
            Registry(secured.bootstrap_servers, client=client) as registry,
            httpx.Client(base_url=registry.url, trust_env=False, timeout=60) as http,
        ):
            reply = http.post("/subjects/a/versions", json={"schema": INT if expected == 1 else MORE})
            assert reply.status_code == 200, reply.text
            assert http.get("/subjects/a/versions").json() == list(range(1, expected + 1))


@pytest.mark.parametrize(("user", "password"), [("registry", "wrong"), ("stranger", "secret")])
def test_one_that_may_not_log_in_or_read_does_not_start(
    user: str, password: str, secured: Broker, certificates: Certificates
) -> None:
    registry = Registry(secured.bootstrap_servers, client=login(certificates.ca, user, password))
    with pytest.raises(OttlaError) as caught:
        registry.start()
    assert password not in str(caught.value)
