"""Apache Kafka behind TLS and SASL: one node with a user, for tests of our own client and of Spark.

with SecuredKafka(folder) as kafka:
    kafka.bootstrap                              # still plain text, to prepare and to compare
    kafka.settings("SASL_SSL", "PLAIN")          # by librdkafka's names, bootstrap.servers among them
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Self

from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from tests.support.certificates import Certificates
from tests.support.kafka_peer import KafkaPeer

# Of SCRAM-SHA-256 without TLS; all others last.
SESSION_MS = 1_000
USER, PASSWORD = "ada", 'se"cr,et='
SCRAM = {"SCRAM-SHA-256": ScramMechanism.SCRAM_SHA_256, "SCRAM-SHA-512": ScramMechanism.SCRAM_SHA_512}
MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
LISTENERS = ("SSL", "SASL_PLAINTEXT", "SASL_SSL")


# Whoever logs in may do what was granted; the listener in plain text, which brokers and tests use, may do anything.
AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


class SecuredKafka(KafkaPeer):
    def __init__(self, folder: Path, properties: Mapping[str, str] | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.certificates = Certificates(folder)
        self.identity = self.certificates.issue("ada@example.com")
        super().__init__(folder, self._security() | dict(properties or {}), LISTENERS)

    def _security(self) -> dict[str, str]:
        # Backslashes once for Java's properties and once for its login configuration.
        known = PASSWORD.replace('"', '\\\\"')
        jaas = {name: f"{module} required;" for name, module in MODULES.items()}
        jaas["PLAIN"] = f'{MODULES["PLAIN"]} required user_{USER}="{known}";'
        settings = {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.certificates.issue("localhost", "127.0.0.1")),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.certificates.ca),
            # Only where nobody logs in otherwise.
            "listener.name.ssl.ssl.client.auth": "required",
            "sasl.enabled.mechanisms": ",".join(MODULES),
            "group.initial.rebalance.delay.ms": "0",
            "offsets.topic.num.partitions": "4",
            "transaction.state.log.num.partitions": "4",
        }
        settings["listener.name.sasl_plaintext.scram-sha-256.connections.max.reauth.ms"] = str(SESSION_MS)
        for listener in ("sasl_plaintext", "sasl_ssl"):
            for mechanism, line in jaas.items():
                settings[f"listener.name.{listener}.{mechanism.lower()}.sasl.jaas.config"] = line
        return settings

    def start(self, timeout_s: float = 120.0) -> Self:
        super().start(timeout_s)
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        for mechanism in SCRAM.values():
            made = UserScramCredentialUpsertion(USER, ScramCredentialInfo(mechanism, 4096), PASSWORD.encode())
            admin.alter_user_scram_credentials([made])[USER].result(20)
        return self

    def settings(self, protocol: str, mechanism: str = "SCRAM-SHA-512", password: str = PASSWORD) -> dict[str, str]:
        return {
            "bootstrap.servers": self.address(protocol),
            "security.protocol": protocol,
            "sasl.mechanisms": mechanism,
            "sasl.username": USER,
            "sasl.password": password,
            "ssl.ca.location": str(self.certificates.ca),
        }
