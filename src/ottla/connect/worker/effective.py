"""A connector's settings with the worker's where it has none of its own."""

from __future__ import annotations

from collections.abc import Mapping

PARTS = ("key.converter", "value.converter", "header.converter")


def effective(config: Mapping[str, str], defaults: Mapping[str, str]) -> dict[str, str]:
    """The worker's converters where the connector names none; theirs go with their own settings."""
    found = dict(config)
    for part in PARTS:
        if part not in config:
            ours = {name: value for name, value in defaults.items() if name == part or name.startswith(f"{part}.")}
            found = ours | found
    return found
