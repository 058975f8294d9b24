"""What DescribeConfigs says about one setting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ottla.common.config import Scope, Setting, Source, SourcedText

# In the protocol the level of a logger has no type.
UNKNOWN_TYPE = 0


@dataclass(frozen=True, slots=True)
class Entry:
    name: str
    text: str | None
    source: Source
    # All values that supply the setting, the effective one first.
    supplied: Sequence[SourcedText] = ()
    read_only: bool = False
    is_sensitive: bool = False
    config_type: int = UNKNOWN_TYPE
    doc: str | None = None

    def shown(self, text: str | None) -> str | None:
        return None if self.is_sensitive else text


def entry(setting: Setting[Any], text: str | None, supplied: Sequence[SourcedText]) -> Entry:
    """The first of the values that supply the setting is in force."""
    return Entry(
        setting.name,
        text,
        supplied[0].source if supplied else Source.DEFAULT_CONFIG,
        supplied,
        is_sensitive=setting.is_sensitive,
        config_type=setting.kind.value,
        doc=setting.doc,
    )


def broker_entry(setting: Setting[Any], text: str | None, supplied: Sequence[SourcedText]) -> Entry:
    return replace(entry(setting, text, supplied), read_only=setting.scope is Scope.READ_ONLY)
