"""Rules over more than one broker property, as Kafka has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.common.config.security import MECHANISMS
from ottla.common.errors import OttlaError

if TYPE_CHECKING:
    from ottla.common.config.broker_config import BrokerConfig
    from ottla.common.config.listeners import Listener

_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_CLEANER_BUFFER_BYTES_MIN = 1024**2
_ORDERED = tuple(
    (f"group.consumer.min.{what}", f"group.consumer.{what}", f"group.consumer.max.{what}")
    for what in ("session.timeout.ms", "heartbeat.interval.ms", "assignment.interval.ms")
)


def check_together(config: BrokerConfig) -> None:
    """OttlaError names the properties that do not fit one another."""
    _check_listeners(config)
    _check_guards(config)
    _check_logins(config)
    _check_groups(config)
    if 0 < config.queued_max_request_bytes < config.socket_request_max_bytes:
        raise OttlaError("queued.max.request.bytes must be at least socket.request.max.bytes, or 0 or less.")
    for retention in ("log.retention.ms", "log.retention.minutes", "log.retention.hours"):
        if config.value(retention) == 0:
            raise OttlaError(f"{retention} must be -1 (without limit) or at least 1.")
    if config.log_cleaner_dedupe_buffer_size < _CLEANER_BUFFER_BYTES_MIN * max(1, config.log_cleaner_threads):
        raise OttlaError("log.cleaner.dedupe.buffer.size must be at least 1 MB for each of log.cleaner.threads.")


def _check_listeners(config: BrokerConfig) -> None:
    _check_way_of_brokers(config)
    if config.max_connections_per_ip == 0 and not config.max_connections_per_ip_overrides:
        raise OttlaError("max.connections.per.ip can be 0 only if max.connections.per.ip.overrides lets someone in.")


def _check_way_of_brokers(config: BrokerConfig) -> None:
    """What the listener between brokers takes is known to be there; whether it can be used is tried at the start."""
    if config.inter_broker_listener_name and config.is_set("security.inter.broker.protocol"):
        raise OttlaError("inter.broker.listener.name and security.inter.broker.protocol exclude each other: give one.")
    used = config.listener_of_brokers
    if not config.zookeeper_connect or not used.protocol.has_sasl:
        return
    mechanism = config.of_listener(used.name, "sasl.mechanism.inter.broker.protocol")
    if mechanism == "OAUTHBEARER":
        # A token has to be fetched, and fetched again, from a service without which no replica would be in sync.
        raise OttlaError(
            f"sasl.mechanism.inter.broker.protocol is OAUTHBEARER, and brokers fetch no tokens: set it to PLAIN, "
            f"SCRAM-SHA-256 or SCRAM-SHA-512 for listener {used.name}, or let brokers show certificates to each other "
            "on an SSL listener; clients may log in by OAUTHBEARER all the same."
        )
    if mechanism == "GSSAPI":
        raise OttlaError(
            f"Brokers log in to each other through listener {used.name} ({used.protocol.value}): set "
            "sasl.mechanism.inter.broker.protocol to PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512."
        )
    if mechanism not in config.of_listener(used.name, "sasl.enabled.mechanisms"):
        raise OttlaError(
            f"sasl.mechanism.inter.broker.protocol is {mechanism}, which listener {used.name} does not offer: add it "
            "to sasl.enabled.mechanisms."
        )


# What each refuses to clients in Kafka. Going on without it would let everybody do what one meant to prevent.
_GUARDS = {
    "create.topic.policy.class.name": "every topic would be let through",
    "alter.config.policy.class.name": "every change would be let through",
}


def _check_guards(config: BrokerConfig) -> None:
    for name, risk in _GUARDS.items():
        if config.value(name):
            raise OttlaError(
                f"{name} is set, but it cannot be enforced yet and {risk}: remove it to start all the same."
            )


def _check_logins(config: BrokerConfig) -> None:
    for listener in config.endpoints:
        if not listener.protocol.has_sasl:
            continue
        wanted = config.of_listener(listener.name, "sasl.enabled.mechanisms")
        mechanisms = [mechanism for mechanism in wanted if mechanism in MECHANISMS]
        if not mechanisms:
            raise OttlaError(
                f"Listener {listener.name} has no mechanism to log in with that is served here (GSSAPI is not): set "
                f"sasl.enabled.mechanisms to some of {', '.join(MECHANISMS)}."
            )
        if "PLAIN" in mechanisms and not listener.protocol.has_tls:
            _check_plain_is_private(config, listener)
        if "OAUTHBEARER" in mechanisms:
            _check_tokens(config)


def _check_plain_is_private(config: BrokerConfig, listener: Listener) -> None:
    if not config.ottla_plain_without_tls and listener.host not in _LOOPBACK:
        raise OttlaError(
            f"Listener {listener.name} would take passwords of PLAIN without TLS from other machines: use SASL_SSL, a "
            "SCRAM mechanism, or an address of loopback; or set ottla.plain.without.tls=true where the network is safe."
        )


def _check_tokens(config: BrokerConfig) -> None:
    for name in ("jwks.endpoint.url", "expected.issuer", "expected.audience"):
        if not config.value(f"sasl.oauthbearer.{name}"):
            raise OttlaError(
                f"sasl.enabled.mechanisms has OAUTHBEARER, which needs sasl.oauthbearer.{name}: without it any signed "
                "token would do."
            )


def _check_groups(config: BrokerConfig) -> None:
    if "classic" not in config.group_coordinator_rebalance_protocols:
        raise OttlaError("group.coordinator.rebalance.protocols must contain classic.")
    for low, middle, high in _ORDERED:
        if not config.value(low) <= config.value(middle) <= config.value(high):
            raise OttlaError(f"{middle} must lie between {low} and {high}.")
