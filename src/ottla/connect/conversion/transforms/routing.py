"""Where a record goes: RegexRouter and TimestampRouter change its topic, Filter drops it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from ottla.connect.api.config import NO_DEFAULT, ConfigDef, ConfigType, Importance
from ottla.connect.api.data import Records
from ottla.connect.conversion.errors import ArgumentError, DataError
from ottla.connect.conversion.java_dates import BadPattern, date_format
from ottla.connect.conversion.java_regex import NotTranslated, compile_java, replaced_first
from ottla.connect.conversion.java_text import MILLIS_PER_DAY
from ottla.connect.conversion.rows import Row
from ottla.connect.conversion.topic_patterns import TopicPattern
from ottla.connect.conversion.transforms.base import Transform, key


def regex(text: str) -> str | None:
    try:
        compile_java(text)
    except NotTranslated as error:
        return f"{error}."
    return None


def date_pattern(text: str) -> str | None:
    try:
        date_format(text)
    except BadPattern as error:
        return f"{error}."
    return None


class RegexRouter(Transform):
    name = "RegexRouter"
    has_parts = False
    config_def = ConfigDef(
        (
            key(
                "regex",
                ConfigType.STRING,
                "A Java regular expression that the whole name of a topic has to match.",
                NO_DEFAULT,
                Importance.HIGH,
                regex,
            ),
            key(
                "replacement",
                ConfigType.STRING,
                "The name of the topic then; `$1` and `${name}` are groups of the expression.",
                NO_DEFAULT,
                Importance.HIGH,
            ),
        )
    )

    def __init__(self, settings: Mapping[str, Any], part: str = "value") -> None:
        super().__init__(settings, part)
        self._pattern = TopicPattern(settings["regex"], "regex")
        self._replacement: str = settings["replacement"]

    def _routed(self, topic: str) -> str:
        found = self._pattern.found(topic)
        if found is None:
            return topic
        try:
            return replaced_first(found, self._replacement)
        except NotTranslated as error:
            raise ArgumentError(f"the replacement '{self._replacement}' cannot be made: {error}.") from None

    def row(self, row: Row) -> Row | None:
        row.topic = self._routed(row.topic)
        return row

    def columns(self, records: Records) -> Records | None:
        encoded = records.topics.dictionary_encode()
        try:
            routed = pa.array([self._routed(topic) for topic in encoded.dictionary.to_pylist()], pa.string())
        except ArgumentError:
            return None
        return replace(records, topics=routed.take(encoded.indices))


class TimestampRouter(Transform):
    name = "TimestampRouter"
    has_parts = False
    config_def = ConfigDef(
        (
            key(
                "topic.format",
                ConfigType.STRING,
                "The name of the topic; `${topic}` and `${timestamp}` stand for the record's.",
                "${topic}-${timestamp}",
                Importance.HIGH,
            ),
            key(
                "timestamp.format",
                ConfigType.STRING,
                "How the timestamp is written, in UTC: a pattern of java.text.SimpleDateFormat.",
                "yyyyMMdd",
                Importance.HIGH,
                date_pattern,
            ),
        )
    )

    def __init__(self, settings: Mapping[str, Any], part: str = "value") -> None:
        super().__init__(settings, part)
        self._topic: str = settings["topic.format"]
        self._format = date_format(settings["timestamp.format"])
        # What a moment is rounded to before it is written.
        self._unit = MILLIS_PER_DAY if self._format.is_by_day else 1

    def row(self, row: Row) -> Row | None:
        if row.timestamp is None:
            raise DataError("TimestampRouter needs a timestamp, and the record has none.")
        row.topic = self._routed(row.topic, self._format.format(row.timestamp))
        return row

    def _routed(self, topic: str, timestamp: str) -> str:
        return self._topic.replace("${topic}", topic).replace("${timestamp}", timestamp)

    def columns(self, records: Records) -> Records | None:
        if records.timestamps.null_count:
            return None
        known: dict[tuple[str, int], str] = {}
        found = []
        for topic, timestamp in zip(records.topics.to_pylist(), records.timestamps.to_pylist(), strict=True):
            at = topic, timestamp // self._unit
            if at not in known:
                known[at] = self._routed(topic, self._format.format(timestamp))
            found.append(known[at])
        return replace(records, topics=pa.array(found, pa.string()))


class Filter(Transform):
    name = "Filter"
    has_parts = False

    def row(self, row: Row) -> Row | None:
        return None

    def columns(self, records: Records) -> Records | None:
        return records.slice(0, 0)
