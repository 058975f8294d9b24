"""Which property names are known, and what to say about the others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ottla.common.config.removed import PLUGIN_NAMES, PLUGIN_PREFIXES, REMOVED
from ottla.common.config.setting import Setting
from ottla.common.errors import OttlaError


def recognise(properties: Mapping[str, str], known: Mapping[str, Setting[Any]]) -> tuple[dict[str, str], list[str]]:
    """The properties that have a definition, and warnings about the rest; an unknown name is an error."""
    kept: dict[str, str] = {}
    without_effect: list[str] = []
    warnings: list[str] = []
    for name, text in properties.items():
        if name in known:
            kept[name] = text
            if not known[name].acted_on:
                without_effect.append(name)
        elif name in REMOVED:
            warnings.append(f"{name} has no effect: {REMOVED[name]}.")
        elif name in PLUGIN_NAMES or name.startswith(PLUGIN_PREFIXES):
            without_effect.append(name)
        else:
            raise unknown("configuration property", name, known)
    if without_effect:
        warnings.insert(0, "Known to Kafka but without effect here: " + ", ".join(sorted(without_effect)) + ".")
    return kept, warnings


def unknown(what: str, name: str, known: Iterable[str]) -> OttlaError:
    """`what` is the kind of name, such as "topic config name"."""
    import difflib  # only a mistake pays for it

    nearest = difflib.get_close_matches(name.lower(), list(known), n=1, cutoff=0.6)
    hint = f"; the nearest known one is {nearest[0]}" if nearest else ""
    return OttlaError(f"Unknown {what}: {name}{hint}.")
