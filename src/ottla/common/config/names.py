"""Which property names are known, and what to say about the others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ottla.common.config.removed import PLUGIN_PREFIXES, REMOVED
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
        elif general_of(name, known) is not None:
            kept[name] = text
        elif name in REMOVED:
            warnings.append(f"{name} has no effect: {REMOVED[name]}.")
        elif name.startswith(PLUGIN_PREFIXES):
            without_effect.append(name)
        else:
            raise unknown("configuration property", name, known)
    if without_effect:
        warnings.insert(0, "Known to Kafka but without effect here: " + ", ".join(sorted(without_effect)) + ".")
    return kept, warnings


LISTENER_PREFIX = "listener.name."
# What may be given for one listener alone, if we act on it.
_PER_LISTENER = ("ssl.", "sasl.", "connections.max.reauth.ms")


def of_listener(listener: str, name: str, mechanism: str = "") -> str:
    """The property that gives `name` another value for one listener, or one mechanism of it."""
    return ".".join(filter(None, (LISTENER_PREFIX + listener.lower(), mechanism.lower(), name)))


def general_of(name: str, known: Mapping[str, Setting[Any]]) -> str | None:
    """The property that is given for one listener, or for a mechanism of it; None if it is none that we act on."""
    if not name.startswith(LISTENER_PREFIX):
        return None
    parts = name.removeprefix(LISTENER_PREFIX).split(".")
    for start in range(1, len(parts)):
        general = ".".join(parts[start:])
        if general.startswith(_PER_LISTENER) and general in known and known[general].acted_on:
            return general
    return None


def check_listener_values(properties: Mapping[str, str], known: Mapping[str, Setting[Any]]) -> None:
    """Raises InvalidValue for one that is wrong."""
    for name, text in properties.items():
        if (general := general_of(name, known)) is not None:
            known[general].parse(text)


def unknown(what: str, name: str, known: Iterable[str]) -> OttlaError:
    """`what` is the kind of name, such as "topic config name"."""
    import difflib  # only a mistake pays for it

    nearest = difflib.get_close_matches(name.lower(), list(known), n=1, cutoff=0.6)
    hint = f"; the nearest known one is {nearest[0]}" if nearest else ""
    return OttlaError(f"Unknown {what}: {name}{hint}.")
