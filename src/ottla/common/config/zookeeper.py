"""Settings of the ZooKeeper ensemble that keeps a cluster's metadata, under the names that Kafka had until 3.9."""

from __future__ import annotations

import re

from ottla.common.config.checks import Check, at_least
from ottla.common.config.configuration import Configuration
from ottla.common.config.setting import Unit, boolean, integer, password, string

_SERVER = r"(\[[0-9A-Fa-f:.]+\]|[^\s,/:\[\]]+)(:[0-9]{1,5})?"
_CONNECT = re.compile(rf"{_SERVER}(\s*,\s*{_SERVER})*(/[^\s,]*)?")
_AUTH = re.compile(r"digest:[^:\s]+:.+")


class ZookeeperSettings(Configuration):
    zookeeper_connect = string(
        "zookeeper.connect",
        None,
        "The ZooKeeper ensemble that keeps the metadata of a cluster, and a path in it that is the cluster's own, which"
        " is made if it is missing; not set, a single node keeps its metadata itself.",
        check=Check("HOST:PORT,HOST:PORT,.../PATH", lambda text: bool(_CONNECT.fullmatch(text))),
    )
    zookeeper_session_timeout_ms = integer(
        "zookeeper.session.timeout.ms",
        9_000,
        "After so long without a word a broker counts as gone (in Kafka: 18000); one whose process has ended is noticed"
        " at once. The server may choose a longer one: at least two of its ticks.",
        unit=Unit.MS,
        check=at_least(100),
    )
    zookeeper_connection_timeout_ms = integer(
        "zookeeper.connection.timeout.ms",
        18_000,
        "How long a start waits for ZooKeeper.",
        unit=Unit.MS,
        check=at_least(1),
    )
    ottla_zookeeper_auth = password(
        "ottla.zookeeper.auth",
        None,
        "Who we are to ZooKeeper.",
        check=Check("digest:USER:PASSWORD", lambda text: bool(_AUTH.fullmatch(text))),
    )
    zookeeper_set_acl = boolean(
        "zookeeper.set.acl",
        False,
        "Whether the nodes that we make are for our user alone (ottla.zookeeper.auth, or the certificate of"
        " zookeeper.ssl.keystore.location).",
    )
    zookeeper_ssl_client_enable = boolean("zookeeper.ssl.client.enable", False, "Whether to talk TLS to ZooKeeper.")
    zookeeper_ssl_keystore_location = string(
        "zookeeper.ssl.keystore.location", None, "A PEM file with our private key and its certificates."
    )
    zookeeper_ssl_keystore_password = password(
        "zookeeper.ssl.keystore.password", None, "The password of the private key in zookeeper.ssl.keystore.location."
    )
    zookeeper_ssl_truststore_location = string(
        "zookeeper.ssl.truststore.location",
        None,
        "A PEM file with the authorities that we trust; not set, those of the system.",
    )
    zookeeper_ssl_endpoint_identification_algorithm = string(
        "zookeeper.ssl.endpoint.identification.algorithm",
        "HTTPS",
        "HTTPS compares the server's name with its certificate; empty does not.",
        check=Check("HTTPS or empty", lambda text: text.upper() in ("HTTPS", "")),
    )
