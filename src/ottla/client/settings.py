"""Kafka's client settings as Spark's integration passes them: `kafka.` and the name that a Java client knows.

A setting that our client has no use for is accepted as long as Kafka knows it, so a query moves unchanged; one that
would change what is read or who may read it is refused, and so is a misspelt one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ottla.client.access.security import PLAIN_TEXT, Security
from ottla.client.access.security_settings import is_about_security, parse_security
from ottla.client.address import ClusterAddress
from ottla.client.setting_names import KnownNames
from ottla.common.errors import OttlaError

PREFIX = "kafka."

# Known to Kafka's consumer or producer, without a counterpart in this client.
_WITHOUT_EFFECT = frozenset(  # as text: sixty names in a list would fill a screen
    """
    acks allow.auto.create.topics auto.commit.interval.ms batch.size buffer.memory client.dns.lookup
    compression.gzip.level compression.lz4.level compression.type compression.zstd.level connections.max.idle.ms
    delivery.timeout.ms enable.idempotence enable.metrics.push exclude.internal.topics fetch.max.wait.ms
    fetch.min.bytes group.instance.id group.protocol group.remote.assignor heartbeat.interval.ms
    internal.leave.group.on.close linger.ms max.block.ms max.in.flight.requests.per.connection max.poll.interval.ms
    max.poll.records max.request.size metadata.max.age.ms metadata.max.idle.ms metadata.recovery.rebootstrap.trigger.ms
    metadata.recovery.strategy metric.reporters metrics.num.samples metrics.recording.level metrics.sample.window.ms
    partition.assignment.strategy partitioner.adaptive.partitioning.enable partitioner.availability.timeout.ms
    partitioner.class partitioner.ignore.keys receive.buffer.bytes reconnect.backoff.max.ms reconnect.backoff.ms
    retries send.buffer.bytes session.timeout.ms socket.connection.setup.timeout.max.ms
    socket.connection.setup.timeout.ms transactional.id
    transaction.two.phase.commit.enable client.rack group.id
    """.split()  # noqa: SIM905
)
_REFUSED = {
    "key.deserializer": "keys are always bytes: cast or decode the column",
    "value.deserializer": "values are always bytes: cast or decode the column",
    "key.serializer": "keys are always bytes or text: encode the column",
    "value.serializer": "values are always bytes or text: encode the column",
    "auto.offset.reset": "use the option startingOffsets, Spark keeps the offsets itself",
    "enable.auto.commit": "offsets are kept by Spark",
    "interceptor.classes": "interceptors are Java code: change the DataFrame",
}
_USED = frozenset(
    """
    bootstrap.servers check.crcs client.id default.api.timeout.ms fetch.max.bytes isolation.level
    max.partition.fetch.bytes request.timeout.ms retry.backoff.max.ms retry.backoff.ms transaction.timeout.ms
    """.split()  # noqa: SIM905
)
_NAMES = KnownNames("option", PREFIX, _USED | _WITHOUT_EFFECT, _REFUSED)


@dataclass(frozen=True)
class ClientSettings:
    """What the client acts on. Pickled to executors, and the key under which they keep their connections."""

    bootstrap_servers: str
    client_id: str = "ottla"
    request_timeout_ms: int = 30_000
    # How long an unreachable or leaderless cluster is waited for, counted from the last progress.
    api_timeout_ms: int = 60_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    # Two answers of this size are mostly still in a processor's cache when they are decoded.
    fetch_bytes_max: int = 4 * 1024 * 1024
    partition_fetch_bytes_max: int = 2 * 1024 * 1024
    is_committed_only: bool = True
    check_crcs: bool = True
    # How long a coordinator lets a transaction of this client stay open.
    transaction_timeout_ms: int = 60_000
    security: Security = PLAIN_TEXT

    @property
    def address(self) -> ClusterAddress:
        return ClusterAddress(self.bootstrap_servers, self.security)


def parse_settings(options: Mapping[str, str]) -> ClientSettings:
    """From all options of a query, of which those that begin with `kafka.` are read. Raises OttlaError."""
    given = {
        name.lower().removeprefix(PREFIX): value for name, value in options.items() if name.lower().startswith(PREFIX)
    }
    for name in given:
        if not is_about_security(name):
            _NAMES.check(name)
    servers = given.get("bootstrap.servers", "").strip()
    if not servers:
        raise OttlaError("the option kafka.bootstrap.servers is missing: say where a broker is, as in 127.0.0.1:9092.")
    return ClientSettings(
        bootstrap_servers=_servers(servers),
        client_id=given.get("client.id", "ottla"),
        request_timeout_ms=_number(given, "request.timeout.ms", 30_000),
        api_timeout_ms=_number(given, "default.api.timeout.ms", 60_000),
        retry_backoff_ms=_number(given, "retry.backoff.ms", 100),
        retry_backoff_max_ms=_number(given, "retry.backoff.max.ms", 1_000),
        fetch_bytes_max=_number(given, "fetch.max.bytes", ClientSettings.fetch_bytes_max),
        partition_fetch_bytes_max=_number(given, "max.partition.fetch.bytes", ClientSettings.partition_fetch_bytes_max),
        is_committed_only=_isolation(given.get("isolation.level", "read_committed")),
        check_crcs=_boolean(given, "check.crcs", default=True),
        transaction_timeout_ms=_number(given, "transaction.timeout.ms", ClientSettings.transaction_timeout_ms),
        security=parse_security(given),
    )


def parse_address(bootstrap: str, kafka: Mapping[str, str] | None = None) -> ClusterAddress:
    return parse_named(bootstrap, kafka).address


def parse_named(bootstrap: str, kafka: Mapping[str, str] | None = None) -> ClientSettings:
    """For what takes the servers by themselves, and other settings under Kafka's names, with or without `kafka.`."""
    given = {PREFIX + name.lower().removeprefix(PREFIX): str(value) for name, value in (kafka or {}).items()}
    named = given.setdefault(f"{PREFIX}bootstrap.servers", bootstrap)
    if named.strip() != bootstrap.strip():
        raise OttlaError(f"bootstrap is {bootstrap}, but bootstrap.servers is {named}: name one cluster.")
    return parse_settings(given)


def _servers(text: str) -> str:
    for server in text.split(","):
        host, _, port = server.strip().rpartition("://")[2].rpartition(":")
        if not host or not port.isdigit() or not 0 < int(port) < 65536:
            raise OttlaError(f"kafka.bootstrap.servers has '{server.strip()}', which is not of the form host:port.")
    return text


def _number(given: Mapping[str, str], name: str, default: int) -> int:
    text = str(given.get(name, default)).strip()
    if not text.isascii() or not text.isdigit() or not 0 < int(text) < 2**31:
        raise OttlaError(f"the option {PREFIX}{name} wants a whole number above 0, not '{text}'.")
    return int(text)


def _isolation(text: str) -> bool:
    levels = {"read_committed": True, "read_uncommitted": False}
    if text.strip().lower() not in levels:
        raise OttlaError(f"kafka.isolation.level is read_committed or read_uncommitted, not '{text}'.")
    return levels[text.strip().lower()]


def _boolean(given: Mapping[str, str], name: str, *, default: bool) -> bool:
    text = str(given.get(name, default)).strip().lower()
    if text not in ("true", "false"):
        raise OttlaError(f"the option {PREFIX}{name} is true or false, not '{text}'.")
    return text == "true"
