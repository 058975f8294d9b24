"""What somebody writes a connector with: its configuration, its records, and the two classes to derive from."""

from ottla.connect.api.config import NO_DEFAULT, ConfigDef, ConfigKey, ConfigType, ConfigValue, Importance
from ottla.connect.api.data import Column, Field, Header, Records, Schema, SchemaType
from ottla.connect.api.plugins import (
    BadRecords,
    Batching,
    ConnectorFailure,
    Offset,
    Outage,
    Partition,
    Read,
    Sink,
    SinkWriter,
    Source,
    check_numbers,
)

__all__ = [
    "NO_DEFAULT",
    "BadRecords",
    "Batching",
    "Column",
    "ConfigDef",
    "ConfigKey",
    "ConfigType",
    "ConfigValue",
    "ConnectorFailure",
    "Field",
    "Header",
    "Importance",
    "Offset",
    "Outage",
    "Partition",
    "Read",
    "Records",
    "Schema",
    "SchemaType",
    "Sink",
    "SinkWriter",
    "Source",
    "check_numbers",
]
