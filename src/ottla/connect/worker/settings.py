"""What a worker is told, under the names of Kafka Connect's worker.properties.

Settings of the client (`security.protocol`, `sasl.*`, `ssl.*`, ...) are Kafka's. Settings that configure Java's
producers, consumers or class loading have no effect here, which is logged once.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from ottla.client.access.security_settings import is_about_security
from ottla.client.membership import Timing
from ottla.client.settings import ClientSettings, parse_named
from ottla.common.errors import OttlaError
from ottla.connect.rounds.context import RoundSettings
from ottla.connect.storage.topics import TopicPlan
from ottla.connect.worker.providers import Provider, providers_of
from ottla.connect.worker.rest_settings import RestSettings, is_about_rest, parse_rest

_CONVERTER = "org.apache.kafka.connect.json.JsonConverter"
_LOG = logging.getLogger("ottla.connect.settings")
# Names of the client's that a worker's file may have, beside those about security.
_CLIENT = ("client.id", "request.timeout.ms", "retry.backoff.ms", "retry.backoff.max.ms", "default.api.timeout.ms")
_KNOWN = frozenset(  # as text: thirty names in a list would fill a screen
    """
    bootstrap.servers group.id config.storage.topic config.storage.replication.factor offset.storage.topic
    offset.storage.replication.factor offset.storage.partitions status.storage.topic status.storage.replication.factor
    status.storage.partitions rest.advertised.host.name rest.advertised.port session.timeout.ms
    heartbeat.interval.ms rebalance.timeout.ms topic.creation.enable task.shutdown.graceful.timeout.ms
    ottla.round.max.bytes ottla.round.max.ms ottla.idle.max.ms ottla.progress.timeout.ms ottla.restart.backoff.ms
    ottla.restart.backoff.max.ms ottla.metrics.listen exactly.once.source.support plugin.path plugin.discovery
    """.split()  # noqa: SIM905
)


@dataclass(frozen=True)
class WorkerSettings:
    client: ClientSettings
    group: str
    config_topic: TopicPlan
    offset_topic: TopicPlan
    status_topic: TopicPlan
    timing: Timing
    rounds: RoundSettings
    rest: RestSettings
    advertised_host: str | None
    advertised_port: int | None
    # Converters, for connectors that name none.
    defaults: Mapping[str, str] = field(default_factory=dict)
    creates_topics: bool = True
    # Until a round is taken for stuck, and how long a failed connector rests.
    progress_timeout_s: float = 600.0
    restart_s: float = 1.0
    restart_s_max: float = 60.0
    grace_s: float = 5.0
    master: str = "local[*]"
    spark: Mapping[str, str] = field(default_factory=dict)
    providers: Mapping[str, Provider] = field(default_factory=dict)
    # HOST:PORT of metrics; None: nowhere.
    metrics: str | None = None


def parse_worker(
    given: Mapping[str, str], *, listen: str | None = None, master: str = "local[*]", bootstrap: str | None = None
) -> WorkerSettings:
    """From a worker's properties, and what the command line says instead. Raises OttlaError."""
    servers = bootstrap or given.get("bootstrap.servers", "localhost:9092")
    client = {
        name: value
        for name, value in given.items()
        if name in _CLIENT or (is_about_security(name) and not is_about_rest(name))
    }
    _tell_without_effect(given)
    return WorkerSettings(
        client=parse_named(servers, client),
        group=given.get("group.id", "connect-cluster"),
        config_topic=_topic(given, "config", "connect-configs", 1),
        offset_topic=_topic(given, "offset", "connect-offsets", 25),
        status_topic=_topic(given, "status", "connect-status", 5),
        rest=parse_rest(given, listen),
        advertised_host=given.get("rest.advertised.host.name"),
        advertised_port=_number(given, "rest.advertised.port", 0) or None,
        timing=Timing(
            _number(given, "session.timeout.ms", 10_000),
            _number(given, "heartbeat.interval.ms", 3_000),
            _number(given, "rebalance.timeout.ms", 60_000),
        ),
        defaults=_defaults(given),
        creates_topics=_boolean(given, "topic.creation.enable", default=True),
        rounds=RoundSettings(
            _number(given, "ottla.round.max.bytes", RoundSettings.bytes_max),
            _number(given, "ottla.round.max.ms", int(RoundSettings.seconds_max * 1000)) / 1000,
            _number(given, "ottla.idle.max.ms", int(RoundSettings.idle_s_max * 1000)) / 1000,
        ),
        progress_timeout_s=_number(given, "ottla.progress.timeout.ms", 600_000) / 1000,
        restart_s=_number(given, "ottla.restart.backoff.ms", 1_000) / 1000,
        restart_s_max=_number(given, "ottla.restart.backoff.max.ms", 60_000) / 1000,
        grace_s=_number(given, "task.shutdown.graceful.timeout.ms", 5_000) / 1000,
        master=master,
        providers=providers_of(given),
        metrics=given.get("ottla.metrics.listen", "").strip() or None,
        spark={name: value for name, value in given.items() if name.startswith("spark.")},
    )


def _defaults(given: Mapping[str, str]) -> dict[str, str]:
    found = {"key.converter": _CONVERTER, "value.converter": _CONVERTER}
    found |= {
        name: value
        for name, value in given.items()
        if name.startswith(("key.converter", "value.converter", "header.converter"))
    }
    return found


def _tell_without_effect(given: Mapping[str, str]) -> None:
    idle = [
        name
        for name in given
        if name not in _KNOWN
        and name not in _CLIENT
        and not is_about_security(name)
        and not is_about_rest(name)
        and not name.startswith(("key.converter", "value.converter", "header.converter", "spark.", "config.providers"))
    ]
    if idle:
        _LOG.warning("these settings have no effect here: %s", ", ".join(sorted(idle)))


def _topic(given: Mapping[str, str], which: str, default: str, partitions: int) -> TopicPlan:
    setting = f"{which}.storage.topic"
    wanted = 1 if which == "config" else None
    count = 1 if wanted else _number(given, f"{which}.storage.partitions", partitions)
    replication = int(given.get(f"{which}.storage.replication.factor", "-1"))
    return TopicPlan(given.get(setting, default), setting, count, replication, wanted)


def _number(given: Mapping[str, str], name: str, default: int) -> int:
    text = str(given.get(name, default)).strip()
    if not text.isascii() or not text.isdigit() or int(text) >= 2**31:
        raise OttlaError(f"{name} is '{text}', expected a whole number.")
    return int(text)


def _boolean(given: Mapping[str, str], name: str, *, default: bool) -> bool:
    text = given.get(name, str(default)).strip().lower()
    if text not in ("true", "false"):
        raise OttlaError(f"{name} is '{text}', expected true or false.")
    return text == "true"
