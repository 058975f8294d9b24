"""Settings of sockets, connections and requests."""

from __future__ import annotations

import re

from ottla.common.config.checks import NOT_EMPTY, Check, at_least
from ottla.common.config.configuration import Configuration
from ottla.common.config.setting import Scope, Unit, integer, long, names, string

INT_MAX = 2**31 - 1
DEFAULT_PROTOCOLS = "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT"

_LIMIT = re.compile(r"\S+:[0-9]{1,9}")


def _are_limits(text: str) -> bool:
    return not text or all(_LIMIT.fullmatch(pair.strip()) for pair in text.split(","))


class NetworkSettings(Configuration):
    listeners = names(
        "listeners",
        ("PLAINTEXT://:9092",),
        "Addresses to listen on, each NAME://HOST:PORT; an empty host means every interface, port 0 any free port.",
        check=NOT_EMPTY,
    )
    advertised_listeners = names(
        "advertised.listeners",
        None,
        "Addresses that clients are told to connect to, by listener name; without it, those of listeners.",
    )
    listener_security_protocol_map = string(
        "listener.security.protocol.map",
        DEFAULT_PROTOCOLS,
        "Which security protocol each listener name stands for, as NAME:PROTOCOL pairs.",
    )
    inter_broker_listener_name = string(
        "inter.broker.listener.name",
        None,
        "The listener that brokers use among themselves; must be one of listeners.",
    )
    controller_listener_names = names(
        "controller.listener.names",
        (),
        "Listeners of a KRaft controller; they are left out, since a single node has no separate controller.",
    )
    socket_request_max_bytes = integer(
        "socket.request.max.bytes",
        104_857_600,
        "The largest request; a bigger one closes the connection before any of it is read into memory.",
        unit=Unit.BYTES,
        check=at_least(1),
    )
    queued_max_request_bytes = long(
        "queued.max.request.bytes",
        -1,
        "What all requests that are being received or worked on may take; further ones wait in their sockets. "
        "0 or less means 512 MB (in Kafka: no limit).",
        unit=Unit.BYTES,
    )
    socket_send_buffer_bytes = integer(
        "socket.send.buffer.bytes", -1, "SO_SNDBUF of client sockets; -1 leaves it to the system.", unit=Unit.BYTES
    )
    socket_receive_buffer_bytes = integer(
        "socket.receive.buffer.bytes",
        -1,
        "SO_RCVBUF of client sockets; -1 leaves it to the system.",
        unit=Unit.BYTES,
    )
    socket_listen_backlog_size = integer(
        "socket.listen.backlog.size",
        50,
        "How many connections may wait to be accepted; the system may cap it.",
        unit=Unit.COUNT,
        check=at_least(1),
    )
    connections_max_idle_ms = long(
        "connections.max.idle.ms",
        600_000,
        "A connection without traffic for so long is closed; a negative value keeps idle connections.",
        unit=Unit.MS,
    )
    max_connections = integer(
        "max.connections",
        INT_MAX,
        "How many client connections the broker holds at once.",
        unit=Unit.COUNT,
        check=at_least(0),
        scope=Scope.CLUSTER_WIDE,
    )
    max_connections_per_ip = integer(
        "max.connections.per.ip",
        INT_MAX,
        "How many connections one client address may hold.",
        unit=Unit.COUNT,
        check=at_least(0),
        scope=Scope.CLUSTER_WIDE,
    )
    max_connections_per_ip_overrides = string(
        "max.connections.per.ip.overrides",
        "",
        "Exceptions to max.connections.per.ip, as ADDRESS:NUMBER pairs separated by commas.",
        check=Check("ADDRESS:NUMBER pairs separated by commas", _are_limits),
        scope=Scope.CLUSTER_WIDE,
    )
    max_connection_creation_rate = integer(
        "max.connection.creation.rate",
        INT_MAX,
        "New connections accepted per second; further ones wait.",
        unit=Unit.COUNT,
        check=at_least(0),
        scope=Scope.CLUSTER_WIDE,
    )
    fetch_max_bytes = integer(
        "fetch.max.bytes",
        57_671_680,
        "The largest answer to a fetch, whatever the client asks for.",
        unit=Unit.BYTES,
        check=at_least(1024),
    )
    max_incremental_fetch_session_cache_slots = integer(
        "max.incremental.fetch.session.cache.slots",
        1000,
        "How many incremental fetch sessions are remembered.",
        unit=Unit.COUNT,
        check=at_least(0),
    )
    max_request_partition_size_limit = integer(
        "max.request.partition.size.limit",
        2000,
        "The most partitions that one answer of DescribeTopicPartitions carries.",
        unit=Unit.COUNT,
        check=at_least(1),
    )
