"""`/connector-plugins`: which connectors there are, what they want to know, and what is wrong with a configuration."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from starlette.responses import Response

import ottla
from ottla.connect.api import ConfigDef
from ottla.connect.conversion import converters, predicates, transforms
from ottla.connect.definitions import common
from ottla.connect.plugins import UnknownPlugin, find, plugins
from ottla.connect.rest.answers import answer
from ottla.connect.validation import definition, validate
from ottla.connect.worker.errors import Refused

if TYPE_CHECKING:
    from ottla.connect.rest.app import Asked


_HEADERS_ONLY = "SimpleHeaderConverter"


def _between() -> Iterator[tuple[str, str, ConfigDef]]:
    """Transforms, predicates and converters: the class, its type, its settings."""
    for name, (transform, _) in sorted(transforms.BY_NAME.items()):
        if "." in name:
            yield name, "transformation", transform.config_def
    for name, predicate in sorted(predicates.BY_NAME.items()):
        if "." in name:
            yield name, "predicate", predicate.config_def
    ordered = sorted(converters.ALL, key=lambda converter: converter.class_name)
    for converter in ordered:
        if not converter.class_name.endswith(_HEADERS_ONLY):
            yield converter.class_name, "converter", converter.config_def
    for converter in ordered:
        yield converter.class_name, "header_converter", converter.config_def


def listed(asked: Asked) -> Response:
    rows = [{"class": one.class_name, "type": one.kind, "version": one.version} for one in plugins()]
    if asked.query.get("connectorsOnly", "true").lower() == "false":
        rows += [{"class": name, "type": kind, "version": ottla.__version__} for name, kind, _ in _between()]
    return answer(rows)


def config(asked: Asked) -> Response:
    name = asked.names["plugin"]
    try:
        plugin = find(name)
    except UnknownPlugin:
        for known, _, definitions in _between():
            if name in (known, known.rpartition(".")[2]):
                return answer([definition(key) for key in definitions.keys])
        raise Refused(404, f"Unknown plugin {name}.") from None
    own = [*plugin.connector.config_def.keys]
    names = {key.name for key in own}
    shared = [key for key in common(plugin.connector, None).keys if key.name not in names]
    return answer([definition(key) for key in (*own, *shared)])


def validated(asked: Asked) -> Response:
    name, given = asked.names["plugin"], asked.map()
    if (named := given.get("connector.class")) is None:
        raise Refused(400, f"Connector config {given} contains no connector type")
    try:
        plugin = find(name)
        if find(str(named)) != plugin:
            raise Refused(400, f"Included connector type {named} does not match request type {name}")
    except UnknownPlugin as error:
        raise Refused(404, str(error)) from None
    texts = {key: str(value) for key, value in given.items() if value is not None}
    return answer(validate(plugin, texts, asked.worker.settings.defaults))
