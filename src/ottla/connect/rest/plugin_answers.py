"""`/connector-plugins`: which connectors there are, what they want to know, and what is wrong with a configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import Response

from ottla.connect.definitions import common
from ottla.connect.plugins import UnknownPlugin, find, plugins
from ottla.connect.rest.answers import answer
from ottla.connect.validation import definition, validate
from ottla.connect.worker.errors import Refused

if TYPE_CHECKING:
    from ottla.connect.rest.app import Asked


def listed(asked: Asked) -> Response:
    rows = [{"class": one.class_name, "type": one.kind, "version": one.version} for one in plugins()]
    return answer(rows)


def config(asked: Asked) -> Response:
    name = asked.names["plugin"]
    try:
        plugin = find(name)
    except UnknownPlugin:
        raise Refused(404, f"Unknown plugin {name}.") from None
    own = [*plugin.connector.config_def.keys]
    known = {key.name for key in own}
    shared = [key for key in common(plugin.connector, None).keys if key.name not in known]
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
