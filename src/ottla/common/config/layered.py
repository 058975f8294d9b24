"""A configuration of a topic or a group: its own overrides, else what the broker says, else the default."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from ottla.common.config.broker_config import BrokerConfig, Source, SourcedText
from ottla.common.config.configuration import Configuration
from ottla.common.config.names import unknown
from ottla.common.config.setting import Setting


class LayeredConfig(Configuration):
    """The effective settings of one resource; OttlaError if an override is unknown or wrong."""

    what: ClassVar[str]
    source: ClassVar[Source]

    def __init__(self, broker: BrokerConfig, overrides: Mapping[str, str]) -> None:
        known = self.definitions()
        for name in overrides:
            if name not in known:
                raise unknown(f"{self.what} config name", name, known)
        self._apply({setting: _effective(setting, broker, overrides) for setting in known.values()})

    @classmethod
    def explain(cls, name: str, broker: BrokerConfig, overrides: Mapping[str, str]) -> Iterator[SourcedText]:
        """All values that supply one setting, the effective one first."""
        setting = cls.definitions()[name]
        if name in overrides:
            yield SourcedText(name, setting.text(setting.parse(overrides[name])), cls.source)
        # Layer by layer, not name by name: any dynamic value wins over any static one.
        supplied = [value for synonym in setting.synonyms for value in broker.explain(synonym.name)]
        yield from sorted(supplied, key=lambda value: value.source)

    def value(self, name: str) -> Any:
        return self.__dict__[self.definitions()[name].attribute]


def _effective(setting: Setting[Any], broker: BrokerConfig, overrides: Mapping[str, str]) -> Any:
    text = overrides.get(setting.name)
    if text is not None:
        return setting.parse(text)
    for synonym in setting.synonyms:
        value = broker.value(synonym.name)
        if value is not None:
            return value if synonym.factor == 1 else max(-1, value * synonym.factor)
    return setting.default
