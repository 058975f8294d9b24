"""Addresses with names in them. A group, a subject or a connector may be called `team/orders`: its name is one segment
of the address, with the slash encoded, and is decoded only when the segments are told apart."""

from __future__ import annotations

from urllib.parse import unquote

from starlette import routing
from starlette.types import Scope

# More digits than Kafka's numbers have; Python refuses to read thousands of them.
_DIGITS_MAX = 18


class Route(routing.Route):
    def matches(self, scope: Scope) -> tuple[routing.Match, Scope]:
        raw = scope.get("raw_path")
        if raw is None or b"%" not in raw:
            encoded = str(scope["path"])
        else:
            encoded = raw.decode("ascii", "replace")
        if any(part.isdigit() and len(part) > _DIGITS_MAX for part in encoded.split("/")) and ":int}" in self.path:
            return routing.Match.NONE, {}
        match, child = super().matches({**scope, "path": encoded})
        if match is not routing.Match.NONE and "path_params" in child:
            given = child["path_params"]
            child["path_params"] = {
                name: unquote(value) if isinstance(value, str) and encoded is not scope["path"] else value
                for name, value in given.items()
            }
        return match, child
