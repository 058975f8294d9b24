"""Settings of what operators see: metrics, and the logs of requests."""

from __future__ import annotations

import re

from ottla.common.config.checks import Check, at_least
from ottla.common.config.configuration import Configuration
from ottla.common.config.setting import Scope, Unit, integer, long, names, string

_FILTER = re.compile(r"(?:client|topic|address|user|api)=\S+")


def _are_filters(filters: tuple[str, ...]) -> bool:
    return all(pattern == "*" or _FILTER.fullmatch(pattern) for pattern in filters)


class ObservingSettings(Configuration):
    ottla_metrics_listen = string(
        "ottla.metrics.listen",
        "",
        "HOST:PORT at which /metrics, /health/live and /health/ready are served over HTTP, to everybody who reaches "
        "it unless there are users; port 0 is any free one. Empty: nowhere.",
    )
    ottla_metrics_ssl_certificate_location = string(
        "ottla.metrics.ssl.certificate.location",
        "",
        "A PEM file with the certificate, and those that vouch for it: metrics and health are served over HTTPS. "
        "Empty: over HTTP.",
    )
    ottla_metrics_ssl_key_location = string(
        "ottla.metrics.ssl.key.location", "", "A PEM file with its key. Empty: that is in the file of the certificate."
    )
    ottla_metrics_users_file = string(
        "ottla.metrics.users.file",
        "",
        "A TOML file with a section [users.NAME] and a password in each: /metrics asks for a login (HTTP Basic), "
        "/health does not. Empty: nobody is asked.",
    )
    ottla_metrics_topics_max = integer(
        "ottla.metrics.topics.max",
        100,
        "How many topics have metrics of their own: those with the most traffic, and once named they stay. All others "
        "are told together as __other__.",
        unit=Unit.COUNT,
        check=at_least(0),
    )
    ottla_metrics_partitions_max = integer(
        "ottla.metrics.partitions.max",
        1_000,
        "How many partitions of those topics have metrics of their own.",
        unit=Unit.COUNT,
        check=at_least(0),
    )
    ottla_slow_request_log_ms = long(
        "ottla.slow.request.log.ms",
        -1,
        "A request that takes longer is logged, with where its time went. Fetches and joins that wait for others as "
        "they were asked to are not slow. -1: none is.",
        unit=Unit.MS,
        check=at_least(-1),
        scope=Scope.CLUSTER_WIDE,
    )
    ottla_request_log = names(
        "ottla.request.log",
        (),
        "Which requests are logged: client=ID, address=HOST, user=NAME, topic=NAME or api=NAME, of which one has to be "
        "right, or * for all. `ottla log requests` sets it for a while.",
        check=Check("*, or client=, address=, user=, topic= or api= with a name each", _are_filters),
        scope=Scope.CLUSTER_WIDE,
    )
    ottla_request_log_until_ms = long(
        "ottla.request.log.until.ms",
        0,
        "When that ends by itself, in milliseconds since 1970; at most an hour ahead.",
        unit=Unit.MS,
        check=at_least(0),
        scope=Scope.CLUSTER_WIDE,
    )
