"""Rules over more than one broker property, as Kafka has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.common.errors import OttlaError

if TYPE_CHECKING:
    from ottla.common.config.broker_config import BrokerConfig

_CLEANER_BUFFER_BYTES_MIN = 1024**2
_ORDERED = tuple(
    (f"group.consumer.min.{what}", f"group.consumer.{what}", f"group.consumer.max.{what}")
    for what in ("session.timeout.ms", "heartbeat.interval.ms", "assignment.interval.ms")
)


def check_together(config: BrokerConfig) -> None:
    """OttlaError names the properties that do not fit one another."""
    _check_listeners(config)
    _check_guards(config)
    _check_groups(config)
    if 0 < config.queued_max_request_bytes < config.socket_request_max_bytes:
        raise OttlaError("queued.max.request.bytes must be at least socket.request.max.bytes, or 0 or less.")
    for retention in ("log.retention.ms", "log.retention.minutes", "log.retention.hours"):
        if config.value(retention) == 0:
            raise OttlaError(f"{retention} must be -1 (without limit) or at least 1.")
    if config.log_cleaner_dedupe_buffer_size < _CLEANER_BUFFER_BYTES_MIN * max(1, config.log_cleaner_threads):
        raise OttlaError("log.cleaner.dedupe.buffer.size must be at least 1 MB for each of log.cleaner.threads.")


def _check_listeners(config: BrokerConfig) -> None:
    inter_broker = config.inter_broker_listener_name
    if inter_broker and inter_broker.upper() not in {listener.name for listener in config.endpoints}:
        raise OttlaError(f"inter.broker.listener.name is {inter_broker}, which is not among the listeners.")
    if config.max_connections_per_ip == 0 and not config.max_connections_per_ip_overrides:
        raise OttlaError("max.connections.per.ip can be 0 only if max.connections.per.ip.overrides lets someone in.")


# What each refuses to clients in Kafka. Going on without it would let everybody do what one meant to prevent.
_GUARDS = {
    "authorizer.class.name": "every client would be allowed everything",
    "create.topic.policy.class.name": "every topic would be let through",
    "alter.config.policy.class.name": "every change would be let through",
}


def _check_guards(config: BrokerConfig) -> None:
    for name, risk in _GUARDS.items():
        if config.value(name):
            raise OttlaError(
                f"{name} is set, but it cannot be enforced yet and {risk}: remove it to start all the same."
            )
    protocol = config.value("security.inter.broker.protocol")
    if protocol.upper() != "PLAINTEXT":
        raise OttlaError(f"security.inter.broker.protocol is {protocol}, but only PLAINTEXT listeners are served.")


def _check_groups(config: BrokerConfig) -> None:
    if "classic" not in config.group_coordinator_rebalance_protocols:
        raise OttlaError("group.coordinator.rebalance.protocols must contain classic.")
    for low, middle, high in _ORDERED:
        if not config.value(low) <= config.value(middle) <= config.value(high):
            raise OttlaError(f"{middle} must lie between {low} and {high}.")
