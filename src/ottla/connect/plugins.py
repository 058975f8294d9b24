"""Which connectors there are: those that ship, and those of installed packages, by the entry points `ottla.connectors`.

A configuration names one by its Python class, by one of its aliases (Kafka Connect's class names among them), or by the
last part of any of these, with or without `Connector` at its end.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points

from ottla.common.errors import OttlaError
from ottla.connect.api.plugins import Connector, Sink, Source

GROUP = "ottla.connectors"
_SHIPPED = (
    "ottla.connect.connectors.file_stream:FileStreamSource",
    "ottla.connect.connectors.file_stream:FileStreamSink",
    "ottla.connect.connectors.files.source:FilesSource",
    "ottla.connect.connectors.files.sink:FilesSink",
    "ottla.connect.connectors.generator:DataGenerator",
    "ottla.connect.connectors.http_sink:HttpSink",
    "ottla.connect.databases.tables.source:JdbcSource",
    "ottla.connect.databases.tables.sink:JdbcSink",
    "ottla.connect.databases.postgres.source:PostgresSource",
    "ottla.connect.databases.mysql.source:MysqlSource",
)
_LOG = logging.getLogger("ottla.connect.plugins")


class UnknownPlugin(OttlaError):
    """There is no connector of this name."""


@dataclass(frozen=True)
class Plugin:
    connector: type[Connector]

    @property
    def kind(self) -> str:
        return "source" if issubclass(self.connector, Source) else "sink"

    @property
    def class_name(self) -> str:
        """What others know it by: Kafka Connect's name, where there is one."""
        return self.connector.aliases[0] if self.connector.aliases else self.python_name

    @property
    def python_name(self) -> str:
        return f"{self.connector.__module__}.{self.connector.__qualname__}"

    @property
    def task_class(self) -> str:
        """As a configuration of a task has it: by the name that Kafka Connect's own has, where there is one."""
        if self.connector.aliases:
            return self.class_name.removesuffix("Connector") + "Task"
        return self.python_name

    @property
    def version(self) -> str:
        return self.connector.version

    def names(self) -> Iterator[str]:
        for name in (self.python_name, *self.connector.aliases):
            simple = name.rpartition(".")[2]
            yield from (name, simple, simple.removesuffix("Connector"))


@cache
def _loaded() -> tuple[dict[str, Plugin], dict[str, str]]:
    """Plugins by class name, and why others are none, by their names in Python."""
    found: dict[str, Plugin] = {}
    missing: dict[str, str] = {}
    for target in (*_SHIPPED, *(point.value for point in entry_points(group=GROUP))):
        module, _, name = target.partition(":")
        try:
            connector = getattr(import_module(module), name)
        except ModuleNotFoundError as error:
            missing[name] = f"{error.name} is not installed"
            continue
        except (ImportError, AttributeError) as error:
            _LOG.warning("the connector %s cannot be loaded: %s", target, error)
            missing[name] = str(error)
            continue
        if not (isinstance(connector, type) and issubclass(connector, Source | Sink)):
            _LOG.warning("%s is neither a Source nor a Sink, so it is no connector", target)
            continue
        plugin = Plugin(connector)
        found[plugin.class_name] = plugin
    return found, missing


def plugins() -> tuple[Plugin, ...]:
    """By class name. A package that cannot be imported is left out."""
    found, _ = _loaded()
    return tuple(found[name] for name in sorted(found))


def find(name: str) -> Plugin:
    """Raises UnknownPlugin."""
    for plugin in plugins():
        if name in plugin.names():
            return plugin
    if (reason := _loaded()[1].get(name.removesuffix("Connector"))) is not None:
        raise UnknownPlugin(f"the connector {name} cannot be used on this worker: {reason}")
    known = ", ".join(plugin.class_name for plugin in plugins())
    raise UnknownPlugin(
        f"Failed to find any class that implements Connector and which name matches {name}, available connectors are: "
        f"{known}"
    )
