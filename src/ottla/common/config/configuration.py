"""The base of every configuration object: typed settings as attributes, one live set of values.

`definitions()` is the table of a class. An instance is filled from text once and read everywhere; only `_apply` changes
it, so that whoever holds the object sees a dynamic change at the next read. Nobody copies a setting and keeps it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, NoReturn

from ottla.common.config.setting import Setting


class Configuration:
    @classmethod
    @cache
    def definitions(cls) -> Mapping[str, Setting[Any]]:
        """Property name to definition, in order of declaration, the bases' first."""
        found: dict[str, Setting[Any]] = {}
        for owner in reversed(cls.__mro__):
            for value in vars(owner).values():
                if isinstance(value, Setting):
                    found[value.name] = value
        return MappingProxyType(found)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{name} cannot be set: a configuration changes only as a whole")

    def _apply(self, values: Mapping[Setting[Any], Any]) -> None:
        self.__dict__.update({setting.attribute: value for setting, value in values.items()})
