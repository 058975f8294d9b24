"""Configuration under Kafka's own property names, typed, with Kafka 4.3's defaults.

`setting.py` says what a property is. The tables: network, logs, groups and cluster for the broker, not_acted_on for
what Kafka knows and we ignore, and topics, group_level and client_metrics for what a topic, a group or a metrics
subscription may override. `BrokerConfig` puts the layers together.
"""

from ottla.common.config.broker_config import BrokerConfig, Source, SourcedText
from ottla.common.config.client_metrics import ClientMetricsConfig
from ottla.common.config.group_level import GroupConfig, check_group_overrides
from ottla.common.config.layered import LayeredConfig
from ottla.common.config.listeners import Listener, SecurityProtocol
from ottla.common.config.loading import load_from_cli
from ottla.common.config.properties import parse_properties, read_properties
from ottla.common.config.setting import InvalidValue, Scope, Setting
from ottla.common.config.topics import TopicConfig

__all__ = [
    "BrokerConfig",
    "ClientMetricsConfig",
    "GroupConfig",
    "InvalidValue",
    "LayeredConfig",
    "Listener",
    "Scope",
    "SecurityProtocol",
    "Setting",
    "Source",
    "SourcedText",
    "TopicConfig",
    "check_group_overrides",
    "load_from_cli",
    "parse_properties",
    "read_properties",
]
