"""Properties that Kafka had once: recognised, without effect, each with a sentence on what to use instead.

Also the prefixes under which plug-ins and vendors put properties of their own.
"""

from __future__ import annotations

_LISTENERS = "use listeners and advertised.listeners"
_MIGRATION = "there is no KRaft quorum to move to"
_ZOOKEEPER_CLIENT = "the client of ZooKeeper chooses it"
_ENCODER = "there are no encrypted dynamic passwords"
_FORMAT = "records are always kept in format 2"

REMOVED = {
    "advertised.host.name": _LISTENERS,
    "advertised.port": _LISTENERS,
    "auto.include.jmx.reporter": "there is no JMX",
    "broker.id.generation.enable": "set node.id",
    "control.plane.listener.name": "all requests share the listeners",
    "controlled.shutdown.max.retries": "a broker stops without asking a controller",
    "controlled.shutdown.retry.backoff.ms": "a broker stops without asking a controller",
    "delegation.token.master.key": "it is called delegation.token.secret.key now",
    "eligible.leader.replicas.enable": "it is a feature level of the cluster now",
    "group.coordinator.new.enable": "the new group protocol is always there",
    "host.name": _LISTENERS,
    "inter.broker.protocol.version": "brokers agree on versions by themselves",
    "leader.imbalance.per.broker.percentage": "leaders are not rebalanced on a single node",
    "log.message.downconversion.enable": _FORMAT,
    "log.message.format.version": _FORMAT,
    "log.message.timestamp.difference.max.ms": (
        "use log.message.timestamp.before.max.ms and log.message.timestamp.after.max.ms"
    ),
    "offsets.commit.required.acks": "a commit always waits for every in-sync replica",
    "password.encoder.cipher.algorithm": _ENCODER,
    "password.encoder.iterations": _ENCODER,
    "password.encoder.key.length": _ENCODER,
    "password.encoder.keyfactory.algorithm": _ENCODER,
    "password.encoder.old.secret": _ENCODER,
    "password.encoder.secret": _ENCODER,
    "port": _LISTENERS,
    "quota.consumer.default": "set consumer_byte_rate for the default user or client id (AlterClientQuotas)",
    "quota.producer.default": "set producer_byte_rate for the default user or client id (AlterClientQuotas)",
    "reserved.broker.max.id": "set node.id",
    "unstable.metadata.versions.enable": "it is called unstable.feature.versions.enable now",
    "zookeeper.clientCnxnSocket": _ZOOKEEPER_CLIENT,
    "zookeeper.max.in.flight.requests": _ZOOKEEPER_CLIENT,
    "zookeeper.metadata.migration.enable": _MIGRATION,
    "zookeeper.metadata.migration.min.batch.size": _MIGRATION,
    "zookeeper.sync.time.ms": _ZOOKEEPER_CLIENT,
}
REMOVED |= {
    f"zookeeper.ssl.{name}": _ZOOKEEPER_CLIENT
    for name in (
        "cipher.suites",
        "crl.enable",
        "enabled.protocols",
        "ocsp.enable",
        "protocol",
    )
}
REMOVED |= {
    f"zookeeper.ssl.{name}": "keys and certificates are read from PEM files, and certificates have no password"
    for name in ("keystore.type", "truststore.password", "truststore.type")
}

# Known to plug-ins rather than to the broker itself.
PLUGIN_PREFIXES = (
    "listener.name.",
    "config.providers.",
    "rlmm.config.",
    "rsm.config.",
    "remote.log.metadata.",
    "confluent.",
    "metrics.context.",
)
