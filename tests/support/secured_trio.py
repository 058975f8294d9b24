"""Three brokers of a cluster in which nobody is trusted without proof.

Clients log in by SCRAM over TLS; brokers have a listener of their own, `BROKERS`, and log in there as `broker`;
ZooKeeper is reached over TLS, and its nodes are for the brokers' digest alone. ACLs decide who may do what.

    with SecuredTrio(tmp_path, "SCRAM-SHA-512") as trio:
        Producer({"bootstrap.servers": trio.bootstrap, **trio.client_settings})
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.certificates import Certificates
from tests.support.process import free_ports
from tests.support.trio import HOST, IDS, OttlaTrio, _OttlaNode
from tests.support.zookeeper import Zookeeper

ADMIN_PASSWORD, BROKER_PASSWORD, ZOOKEEPER_LOGIN = "admin-secret", "broker-secret", "broker:zookeeper-secret"
MODULES = {"PLAIN": "plain.PlainLoginModule", "SSL": ""}


class SecuredTrio(OttlaTrio):
    label = "secured"

    def __init__(self, folder: Path, between: str, properties: Mapping[str, str] | None = None) -> None:
        """`between` is the mechanism by which brokers log in to each other, or SSL: they show certificates."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "certificates").mkdir()
        self.certificates = Certificates(folder / "certificates")
        super().__init__(folder, properties)
        self.zookeeper_port = free_ports(1)[0]
        self.zookeeper = Zookeeper(folder / "zookeeper", self._zookeeper_settings())
        for one, port in zip(IDS, free_ports(len(IDS)), strict=True):
            node = self.nodes[one]
            assert isinstance(node, _OttlaNode)
            file = folder / f"server-{one}.properties"
            settings = {**node.properties, **self._properties(one, between)}
            file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
            file.chmod(0o600)
            node.properties = {}
            self.nodes[one] = _SecuredNode(node, file, port)
        self.client_settings = self.settings_of("admin", ADMIN_PASSWORD)

    def settings_of(self, user: str, password: str) -> dict[str, Any]:
        return {
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(self.certificates.ca),
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": user,
            "sasl.password": password,
        }

    def _zookeeper_settings(self) -> dict[str, str]:
        return {
            "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
            "secureClientPort": str(self.zookeeper_port),
            "secureClientPortAddress": HOST,
            "ssl.keyStore.location": str(self.certificates.issue("localhost", HOST)),
            "ssl.keyStore.type": "PEM",
            "ssl.trustStore.location": str(self.certificates.ca),
            "ssl.trustStore.type": "PEM",
            "ssl.clientAuth": "need",
        }

    def _properties(self, one: int, between: str) -> dict[str, str]:
        identity = str(self.certificates.issue("broker", HOST, "localhost"))
        login = f'required username="broker" password="{BROKER_PASSWORD}"'
        module = "org.apache.kafka.common.security.scram.ScramLoginModule"
        if between == "PLAIN":
            module, login = (
                "org.apache.kafka.common.security.plain.PlainLoginModule",
                (f'{login} user_broker="{BROKER_PASSWORD}"'),
            )
        ways: dict[str, str] = {
            "listener.security.protocol.map": "SASL_SSL:SASL_SSL,BROKERS:SASL_SSL",
            "sasl.mechanism.inter.broker.protocol": between,
            "listener.name.brokers.sasl.enabled.mechanisms": between,
            f"listener.name.brokers.{between.lower()}.sasl.jaas.config": f"{module} {login};",
        }
        if between == "SSL":
            ways = {
                "listener.security.protocol.map": "SASL_SSL:SASL_SSL,BROKERS:SSL",
                "listener.name.brokers.ssl.client.auth": "required",
                # trustme puts its own names around ours
                "ssl.principal.mapping.rules": r"RULE:^CN=([^,]+),.*$/$1/,DEFAULT",
            }
        return {
            **ways,
            "inter.broker.listener.name": "BROKERS",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": identity,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.certificates.ca),
            "sasl.enabled.mechanisms": "SCRAM-SHA-512",
            "ottla.first.users": ";".join(
                f"{mechanism}=[name={user},password={password}]"
                for user, password in (("admin", ADMIN_PASSWORD), ("broker", BROKER_PASSWORD))
                for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
            ),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:admin;User:broker",
            "zookeeper.connect": f"localhost:{self.zookeeper_port}/trio",
            "zookeeper.ssl.client.enable": "true",
            "zookeeper.ssl.keystore.location": str(self.certificates.issue("broker")),
            "zookeeper.ssl.truststore.location": str(self.certificates.ca),
            "ottla.zookeeper.auth": f"digest:{ZOOKEEPER_LOGIN}",
            "zookeeper.set.acl": "true",
        }


class _SecuredNode(_OttlaNode):
    """Its secrets are in a file, not on its command line."""

    def __init__(self, node: _OttlaNode, file: Path, port_of_brokers: int) -> None:
        super().__init__(node.folder)
        self.port, self.host = node.port, node.host
        self._file = file
        self.port_of_brokers = port_of_brokers

    def command(self) -> list[str]:
        listeners = f"SASL_SSL://{self.host}:{self.port},BROKERS://{self.host}:{self.port_of_brokers}"
        command = [*self.prefix, self._python, "-m", "ottla", "start", "--config", str(self._file)]
        return [*command, "--listen", listeners, "--data-dir", str(self.data_dir)]
