"""Predicates: which records a transform is for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import pyarrow as pa

from ottla.connect.api.config import NO_DEFAULT, ConfigDef, ConfigKey, ConfigType
from ottla.connect.api.data import Records
from ottla.connect.conversion.arrow import is_null
from ottla.connect.conversion.topic_patterns import TopicPattern
from ottla.connect.conversion.transforms.base import not_empty
from ottla.connect.conversion.transforms.routing import regex

PACKAGE = "org.apache.kafka.connect.transforms.predicates"


class Predicate(ABC):
    name: ClassVar[str]
    config_def: ClassVar[ConfigDef] = ConfigDef()

    @abstractmethod
    def __init__(self, settings: Mapping[str, Any]) -> None: ...

    @abstractmethod
    def test(self, records: Records) -> Any:
        """A boolean for each record."""


class TopicNameMatches(Predicate):
    name = "TopicNameMatches"
    config_def = ConfigDef(
        (
            ConfigKey(
                "pattern",
                ConfigType.STRING,
                "A Java regular expression that the whole name of the topic has to match.",
                NO_DEFAULT,
                check=lambda text: not_empty(text) or regex(text),
            ),
        )
    )

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._pattern = TopicPattern(settings["pattern"], "pattern")

    def test(self, records: Records) -> Any:
        encoded = records.topics.dictionary_encode()
        topics = encoded.dictionary.to_pylist()
        matching = set(self._pattern.matching(topics))
        return pa.array([topic in matching for topic in topics], pa.bool_()).take(encoded.indices)


class HasHeaderKey(Predicate):
    name = "HasHeaderKey"
    config_def = ConfigDef(
        (ConfigKey("name", ConfigType.STRING, "The name of a header.", NO_DEFAULT, check=not_empty),)
    )

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._name: str = settings["name"]

    def test(self, records: Records) -> Any:
        if records.headers is None:
            return pa.array([False] * len(records), pa.bool_())
        return pa.array([any(each.key == self._name for each in row) for row in records.headers], pa.bool_())


class RecordIsTombstone(Predicate):
    name = "RecordIsTombstone"

    def __init__(self, settings: Mapping[str, Any]) -> None:
        pass

    def test(self, records: Records) -> Any:
        return is_null(records.values)


ALL: tuple[type[Predicate], ...] = (TopicNameMatches, HasHeaderKey, RecordIsTombstone)
BY_NAME: dict[str, type[Predicate]] = {name: each for each in ALL for name in (each.name, f"{PACKAGE}.{each.name}")}
