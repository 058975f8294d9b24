"""From the broker's configuration to how ZooKeeper is reached."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.common.config import BrokerConfig
from ottla.common.errors import OttlaError
from ottla.metastore.zookeeper import ZookeeperOptions
from tests.support.certificates import Certificates


def options(**properties: str) -> ZookeeperOptions | None:
    return ZookeeperOptions.of(BrokerConfig.load({name.replace("_", "."): text for name, text in properties.items()}))


def test_without_zookeeper_there_is_nothing_to_reach() -> None:
    assert options() is None


def test_the_defaults() -> None:
    assert options(zookeeper_connect="zk1:2181") == ZookeeperOptions("zk1:2181", "", 9_000, 18_000)


def test_servers_and_chroot() -> None:
    found = options(zookeeper_connect="zk1:2181, zk2 ,[::1]:2182/clusters/main/")
    assert found is not None
    assert (found.servers, found.chroot) == ("zk1:2181,zk2,[::1]:2182", "/clusters/main")


def test_time_outs() -> None:
    found = options(
        zookeeper_connect="zk", zookeeper_session_timeout_ms="4000", zookeeper_connection_timeout_ms="60000"
    )
    assert found is not None
    assert (found.session_timeout_ms, found.connection_timeout_ms) == (4_000, 60_000)


def test_a_login_and_its_password_with_colons() -> None:
    found = options(zookeeper_connect="zk", ottla_zookeeper_auth="digest:ottla:a:b", zookeeper_set_acl="true")
    assert found is not None
    assert (found.digest, found.is_acl_set) == ("ottla:a:b", True)


def test_tls(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    identity = str(certificates.issue("broker-1", password="secret"))
    found = options(
        zookeeper_connect="zk",
        zookeeper_ssl_client_enable="true",
        zookeeper_ssl_keystore_location=identity,
        zookeeper_ssl_keystore_password="secret",
        zookeeper_ssl_truststore_location=str(certificates.ca),
        zookeeper_ssl_endpoint_identification_algorithm="",
        zookeeper_set_acl="true",
    )
    assert found == ZookeeperOptions(
        "zk",
        is_acl_set=True,
        is_tls=True,
        identity=identity,
        identity_password="secret",
        trusted=str(certificates.ca),
        is_host_checked=False,
    )


@pytest.mark.parametrize(
    ("properties", "sentence"),
    [
        ({"zookeeper_connect": ""}, "zookeeper.connect: expected HOST:PORT"),
        ({"zookeeper_connect": "zk:x"}, "zookeeper.connect: expected HOST:PORT"),
        ({"zookeeper_connect": "zk1:1 zk2:2"}, "zookeeper.connect: expected HOST:PORT"),
        ({"zookeeper_connect": "zk/a//b"}, "zookeeper.connect: '/a//b' is not a path"),
        ({"zookeeper_connect": "zk/" + "x" * 64}, "longer than 64 bytes"),
        ({"zookeeper_connect": "zk", "zookeeper_set_acl": "true"}, "set ottla.zookeeper.auth"),
        ({"ottla_zookeeper_auth": "sasl:a:b"}, "expected digest:USER:PASSWORD"),
        ({"zookeeper_session_timeout_ms": "0"}, "at least 100"),
    ],
)
def test_what_is_wrong_is_a_sentence(properties: dict[str, str], sentence: str) -> None:
    with pytest.raises(OttlaError, match=sentence) as refused:
        options(**properties)
    assert "sasl:a:b" not in str(refused.value)


@pytest.mark.parametrize(("which", "content"), [("keystore", None), ("truststore", None), ("keystore", "no PEM")])
def test_files_that_cannot_be_used_are_named(tmp_path: Path, which: str, content: str | None) -> None:
    path = tmp_path / "file.pem"
    if content is not None:
        path.write_text(content)
    properties = {f"zookeeper_ssl_{which}_location": str(path)}
    with pytest.raises(OttlaError, match=f"zookeeper.ssl.{which}.location: {path} cannot be (read|used)"):
        options(zookeeper_connect="zk", zookeeper_ssl_client_enable="true", **properties)


def test_a_key_with_a_password_is_not_asked_for_at_the_terminal(tmp_path: Path) -> None:
    identity = str(Certificates(tmp_path).issue("broker-1", password="secret"))
    for password in ({}, {"zookeeper_ssl_keystore_password": "wrong"}):
        with pytest.raises(OttlaError, match=r"zookeeper\.ssl\.keystore\.location"):
            options(
                zookeeper_connect="zk",
                zookeeper_ssl_client_enable="true",
                zookeeper_ssl_keystore_location=identity,
                **password,
            )
