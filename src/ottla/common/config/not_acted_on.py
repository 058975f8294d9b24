"""The broker properties that Kafka 4.3 knows and Ottla does not act on, so that a server.properties from Kafka loads.

They are parsed, kept and described like the others, and named in one warning. A row is: scope (ro read-only, in
internal and read-only, pb per broker, cw cluster-wide), type, name, Kafka's default (`null` where there is none,
nothing for an empty one).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ottla.common.config.setting import Scope, Setting
from ottla.common.config.values import Kind, parse

_SCOPES = {"ro": Scope.READ_ONLY, "in": Scope.READ_ONLY, "pb": Scope.PER_BROKER, "cw": Scope.CLUSTER_WIDE}

# Why nothing is done with them -> the rows.
_AREAS = {
    "one event loop does the work of Kafka's thread pools, request queues and purgatories": """
cw int background.threads 10
ro int delete.records.purgatory.purge.interval.requests 1
ro int fetch.purgatory.purge.interval.requests 1000
ro int group.coordinator.append.linger.ms -1
ro int group.coordinator.background.threads 2
cw int group.coordinator.cached.buffer.max.bytes 1048588
ro int group.coordinator.threads 4
cw double log.cleaner.io.buffer.load.factor 0.9
cw int log.cleaner.io.buffer.size 524288
cw int num.io.threads 8
cw int num.network.threads 3
cw int num.recovery.threads.per.data.dir 2
ro int offsets.load.buffer.size 5242880
ro int producer.purgatory.purge.interval.requests 1000
ro int queued.max.requests 500
""",
    "the jobs of retention and of checkpoints do it along with their own work": """
ro int log.flush.start.offset.checkpoint.interval.ms 60000
in int producer.id.expiration.check.interval.ms 600000
""",
    "files grow as they are written": """
cw boolean log.preallocate false
""",
    "a single node keeps its metadata in an embedded store instead of a KRaft quorum": """
ro int broker.heartbeat.interval.ms 2000
ro int broker.session.timeout.ms 9000
in long controller.performance.always.log.threshold.ms 2000
in long controller.performance.sample.period.ms 60000
ro int controller.quorum.append.linger.ms 25
ro boolean controller.quorum.auto.join.enable false
ro list controller.quorum.bootstrap.servers
ro int controller.quorum.election.backoff.max.ms 1000
ro int controller.quorum.election.timeout.ms 1000
ro int controller.quorum.fetch.max.bytes 1048576
ro int controller.quorum.fetch.snapshot.max.bytes 1048576
ro int controller.quorum.fetch.timeout.ms 2000
ro int controller.quorum.request.timeout.ms 2000
ro int controller.quorum.retry.backoff.ms 20
ro list controller.quorum.voters
ro int controller.socket.timeout.ms 30000
ro list early.start.listeners null
ro int initial.broker.registration.timeout.ms 60000
in long internal.metadata.delete.delay.millis 60000
in int internal.metadata.log.segment.bytes null
in int internal.metadata.max.batch.size.in.bytes 8388608
ro string metadata.log.dir null
ro long metadata.log.max.record.bytes.between.snapshots 20971520
ro long metadata.log.max.snapshot.interval.ms 3600000
ro int metadata.log.segment.bytes 1073741824
ro long metadata.log.segment.ms 604800000
ro int metadata.max.idle.interval.ms 500
ro long metadata.max.retention.bytes 104857600
ro long metadata.max.retention.ms 604800000
ro list process.roles null
in long server.max.startup.time.ms 9223372036854775807
in long unclean.leader.election.interval.ms 300000
in boolean unstable.api.versions.enable false
in boolean unstable.feature.versions.enable false
""",
    "a single node has no replicas to fetch from or to move": """
ro boolean controlled.shutdown.enable true
pb list cordoned.log.dirs
ro long log.dir.failure.timeout.ms 30000
ro int num.replica.alter.log.dirs.threads null
cw int num.replica.fetchers 1
ro int replica.socket.receive.buffer.bytes 65536
ro int request.timeout.ms 30000
ro long socket.connection.setup.timeout.max.ms 30000
ro long socket.connection.setup.timeout.ms 10000
cw boolean unclean.leader.election.enable false
""",
    "a quota callback is a Java class, and replicas that move between directories are paced without windows": """
ro int alter.log.dirs.replication.quota.window.num 11
ro int alter.log.dirs.replication.quota.window.size.seconds 1
ro class client.quota.callback.class null
""",
    "partitions are added and state is loaded inside one process; prepared transactions are not served yet": """
ro int add.partitions.to.txn.retry.backoff.max.ms 100
ro int add.partitions.to.txn.retry.backoff.ms 20
ro int transaction.state.log.load.buffer.size 5242880
ro boolean transaction.two.phase.commit.enable false
""",
    "a guard that is not there yet: a broker that is told to have it does not start": """
ro class alter.config.policy.class.name null
ro class create.topic.policy.class.name null
""",
    "Kerberos and Java's own ways to make TLS and logins are not served": """
pb class principal.builder.class org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder
ro class sasl.client.callback.handler.class null
pb string sasl.kerberos.kinit.cmd /usr/bin/kinit
pb long sasl.kerberos.min.time.before.relogin 60000
pb list sasl.kerberos.principal.to.local.rules DEFAULT
pb string sasl.kerberos.service.name null
pb double sasl.kerberos.ticket.renew.jitter 0.05
pb double sasl.kerberos.ticket.renew.window.factor 0.8
ro class sasl.login.callback.handler.class null
ro class sasl.login.class null
ro int sasl.login.connect.timeout.ms null
ro int sasl.login.read.timeout.ms null
pb short sasl.login.refresh.buffer.seconds 300
pb short sasl.login.refresh.min.period.seconds 60
pb double sasl.login.refresh.window.factor 0.8
pb double sasl.login.refresh.window.jitter 0.05
ro long sasl.login.retry.backoff.max.ms 10000
ro long sasl.login.retry.backoff.ms 100
ro string sasl.mechanism.controller.protocol GSSAPI
ro string sasl.oauthbearer.assertion.algorithm RS256
ro string sasl.oauthbearer.assertion.claim.aud null
ro int sasl.oauthbearer.assertion.claim.exp.seconds 300
ro string sasl.oauthbearer.assertion.claim.iss null
ro boolean sasl.oauthbearer.assertion.claim.jti.include false
ro int sasl.oauthbearer.assertion.claim.nbf.seconds 60
ro string sasl.oauthbearer.assertion.claim.sub null
ro string sasl.oauthbearer.assertion.file null
ro string sasl.oauthbearer.assertion.private.key.file null
ro password sasl.oauthbearer.assertion.private.key.passphrase null
ro string sasl.oauthbearer.assertion.template.file null
ro string sasl.oauthbearer.client.credentials.client.id null
ro password sasl.oauthbearer.client.credentials.client.secret null
ro long sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms 10000
ro long sasl.oauthbearer.jwks.endpoint.retry.backoff.ms 100
ro class sasl.oauthbearer.jwt.retriever.class org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever
ro class sasl.oauthbearer.jwt.validator.class org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator
ro string sasl.oauthbearer.scope null
ro string sasl.oauthbearer.scope.claim.name scope
ro string sasl.oauthbearer.token.endpoint.url null
ro class sasl.server.callback.handler.class null
ro string security.providers null
ro boolean ssl.allow.dn.changes false
ro boolean ssl.allow.san.changes false
pb class ssl.engine.factory.class null
pb string ssl.keymanager.algorithm SunX509
pb password ssl.keystore.password null
pb string ssl.protocol TLSv1.3
pb string ssl.provider null
pb string ssl.secure.random.implementation null
pb string ssl.trustmanager.algorithm PKIX
pb password ssl.truststore.password null
""",
    "Java plug-ins and reporters cannot be loaded, and client telemetry is not collected": """
cw list config.providers
ro int kafka.metrics.polling.interval.secs 10
ro list kafka.metrics.reporters
cw list metric.reporters org.apache.kafka.common.metrics.JmxReporter
ro int metrics.num.samples 2
ro string metrics.recording.level INFO
ro long metrics.sample.window.ms 30000
ro int telemetry.max.bytes 1048576
""",
    "share groups are not served yet": """
cw int group.share.assignment.interval.ms 1000
ro list group.share.assignors simple
ro int group.share.delivery.count.limit 5
ro int group.share.heartbeat.interval.ms 5000
in int group.share.initialize.retry.interval.ms 30000
ro int group.share.max.assignment.interval.ms 15000
ro int group.share.max.delivery.count.limit 10
ro int group.share.max.heartbeat.interval.ms 15000
ro int group.share.max.partition.max.record.locks 4000
ro int group.share.max.record.lock.duration.ms 60000
ro int group.share.max.session.timeout.ms 60000
ro int group.share.max.share.sessions 2000
ro int group.share.max.size 200
ro int group.share.min.assignment.interval.ms 0
ro int group.share.min.delivery.count.limit 2
ro int group.share.min.heartbeat.interval.ms 5000
ro int group.share.min.partition.max.record.locks 100
ro int group.share.min.record.lock.duration.ms 15000
ro int group.share.min.session.timeout.ms 45000
ro int group.share.partition.max.record.locks 2000
in string group.share.persister.class.name org.apache.kafka.server.share.persister.DefaultStatePersister
ro int group.share.record.lock.duration.ms 30000
ro int group.share.session.timeout.ms 45000
ro int share.coordinator.append.linger.ms -1
cw int share.coordinator.cached.buffer.max.bytes 1048588
in int share.coordinator.cold.partition.snapshot.interval.ms 300000
ro int share.coordinator.load.buffer.size 5242880
ro int share.coordinator.snapshot.update.records.per.snapshot 500
ro int share.coordinator.state.topic.compression.codec 0
ro short share.coordinator.state.topic.min.isr 2
ro int share.coordinator.state.topic.num.partitions 50
in int share.coordinator.state.topic.prune.interval.ms 300000
ro short share.coordinator.state.topic.replication.factor 3
ro int share.coordinator.state.topic.segment.bytes 104857600
ro int share.coordinator.threads 1
ro int share.coordinator.write.timeout.ms 5000
ro int share.fetch.purgatory.purge.interval.requests 1000
""",
    "streams groups are not served yet": """
cw int group.streams.assignment.interval.ms 1000
ro int group.streams.heartbeat.interval.ms 5000
ro int group.streams.initial.rebalance.delay.ms 3000
ro int group.streams.max.assignment.interval.ms 15000
ro int group.streams.max.heartbeat.interval.ms 15000
ro int group.streams.max.session.timeout.ms 60000
ro int group.streams.max.size 2147483647
ro int group.streams.max.standby.replicas 2
ro int group.streams.min.assignment.interval.ms 0
ro int group.streams.min.heartbeat.interval.ms 5000
ro int group.streams.min.session.timeout.ms 45000
ro int group.streams.num.standby.replicas 0
ro int group.streams.session.timeout.ms 45000
""",
    "there is no tiered storage": """
cw boolean follower.fetch.last.tiered.offset.enable false
cw long log.local.retention.bytes -2
cw long log.local.retention.ms -2
cw int remote.fetch.max.wait.ms 500
cw long remote.list.offsets.request.timeout.ms 30000
cw long remote.log.index.file.cache.total.size.bytes 1073741824
in long remote.log.index.file.cache.ttl.ms 900000
cw int remote.log.manager.copier.thread.pool.size 10
cw long remote.log.manager.copy.max.bytes.per.second 9223372036854775807
ro int remote.log.manager.copy.quota.window.num 11
ro int remote.log.manager.copy.quota.window.size.seconds 1
cw int remote.log.manager.expiration.thread.pool.size 10
cw long remote.log.manager.fetch.max.bytes.per.second 9223372036854775807
ro int remote.log.manager.fetch.quota.window.num 11
ro int remote.log.manager.fetch.quota.window.size.seconds 1
cw int remote.log.manager.follower.thread.pool.size 2
ro long remote.log.manager.task.interval.ms 30000
in long remote.log.manager.task.retry.backoff.max.ms 30000
in long remote.log.manager.task.retry.backoff.ms 500
in double remote.log.manager.task.retry.jitter 0.2
ro int remote.log.manager.thread.pool.size 2
ro int remote.log.metadata.custom.metadata.max.bytes 128
ro string remote.log.metadata.manager.class.name org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager
ro string remote.log.metadata.manager.class.path null
ro string remote.log.metadata.manager.impl.prefix rlmm.config.
ro string remote.log.metadata.manager.listener.name null
ro int remote.log.reader.max.pending.tasks 100
cw int remote.log.reader.threads 10
ro string remote.log.storage.manager.class.name null
ro string remote.log.storage.manager.class.path null
ro string remote.log.storage.manager.impl.prefix rsm.config.
ro boolean remote.log.storage.system.enable false
""",  # noqa: E501
}


def settings_not_acted_on() -> Iterator[Setting[Any]]:
    for why, rows in _AREAS.items():
        for row in rows.strip().splitlines():
            yield _setting(row, why)


def _setting(row: str, why: str) -> Setting[Any]:
    scope, type_name, name, *rest = row.split(" ", 3)
    kind = Kind[type_name.upper()]
    text = rest[0] if rest else ""
    return Setting(
        name,
        kind,
        None if text == "null" else parse(kind, text),
        f"Accepted for Kafka's sake, without effect: {why}.",
        scope=_SCOPES[scope],
        internal=scope == "in",
        acted_on=False,
    )
