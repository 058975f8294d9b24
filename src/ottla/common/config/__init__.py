"""Configuration under Kafka's own property names, typed, with Kafka 4.3's defaults.

`setting.py` says what a property is; the tables are in network, logs, groups, cluster (broker) and topics (topic and
group level); not_acted_on lists what Kafka knows and we ignore. `BrokerConfig` puts the layers together.
"""

from ottla.common.config.broker_config import BrokerConfig, Source, SourcedText
from ottla.common.config.listeners import Listener, SecurityProtocol
from ottla.common.config.loading import load_from_cli
from ottla.common.config.properties import parse_properties, read_properties
from ottla.common.config.setting import InvalidValue, Scope, Setting
from ottla.common.config.topics import TopicConfig

__all__ = [
    "BrokerConfig",
    "InvalidValue",
    "Listener",
    "Scope",
    "SecurityProtocol",
    "Setting",
    "Source",
    "SourcedText",
    "TopicConfig",
    "load_from_cli",
    "parse_properties",
    "read_properties",
]
