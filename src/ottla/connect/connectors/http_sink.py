"""Records to a web service, as JSON: at least once, since a request whose answer is lost may have counted.

A service that is away or asks for patience (no connection, 408, 425, 429, 5xx) has an outage. One that does not let us
in (401, 403, 407), is elsewhere (3xx) or wants another method (405) has nothing against a record, so none is passed
over for it. One that refuses a request otherwise (any other 4xx) has been given bad records.
"""

from __future__ import annotations

import http
import http.client
import json
import ssl
from collections.abc import Sequence
from typing import Any, ClassVar
from urllib.parse import quote, urlsplit

from ottla.common.ids import TopicPartition
from ottla.connect.api import (
    BadRecords,
    Column,
    ConfigDef,
    ConfigKey,
    ConfigType,
    ConnectorFailure,
    Importance,
    Outage,
    Records,
    Sink,
    SinkWriter,
)
from ottla.connect.connectors.files.writing import plain_json
from ottla.connect.definitions import at_least, one_of

_PATIENCE = (408, 425, 429)
_NOT_LET_IN = (401, 403, 407)
_SHOWN = 300


def _url(text: str) -> str | None:
    try:
        parts = urlsplit(text)
        is_one = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_one = False
    if not is_one:
        return "expected http://HOST/PATH or https://..."
    return "it has a login in it, which belongs into http.authorization" if "@" in parts.netloc else None


def _header(text: str) -> tuple[str, str]:
    name, _, value = text.partition(":")
    return name.strip(), value.strip()


def _headers(texts: list[str]) -> str | None:
    wrong = [text for text in texts if not _header(text)[0] or ":" not in text]
    return f"'{wrong[0]}' is not NAME: VALUE" if wrong else None


class HttpSink(Sink):
    config_def: ClassVar[ConfigDef] = ConfigDef(
        (
            ConfigKey(
                "http.url",
                ConfigType.STRING,
                "Where records go; ${topic} and ${key} stand for the record's.",
                importance=Importance.HIGH,
                check=_url,
            ),
            ConfigKey("http.method", ConfigType.STRING, "POST or PUT.", default="POST", check=one_of("POST", "PUT")),
            ConfigKey("http.headers", ConfigType.LIST, "NAME: VALUE, separated by commas.", default=[], check=_headers),
            ConfigKey("http.authorization", ConfigType.PASSWORD, "The header Authorization.", default=None),
            ConfigKey(
                "batch.records",
                ConfigType.INT,
                "Records of a request: with more than 1 its body is an array.",
                default=1,
                check=at_least(1),
            ),
            ConfigKey(
                "http.timeout.ms", ConfigType.INT, "Until an answer is there.", default=30_000, check=at_least(1)
            ),
        )
    )

    def open(self, partition: TopicPartition, position: int) -> SinkWriter:
        return _Sender(self.settings)


class _Sender(SinkWriter):
    def __init__(self, settings: dict[str, Any]) -> None:
        self._settings = settings
        self._connection: http.client.HTTPConnection | None = None

    def write(self, records: Records) -> None:
        values, keys = _python(records.values), _python(records.keys)
        most = 1 if "${key}" in self._settings["http.url"] else self._settings["batch.records"]
        # A transform may have changed them, so neighbours may go to different places.
        topics = records.topics.to_pylist()
        is_by_topic = "${topic}" in self._settings["http.url"]
        first = 0
        while first < len(values):
            end = min(first + most, len(values))
            if is_by_topic:
                end = next((at for at in range(first + 1, end) if topics[at] != topics[first]), end)
            part = values[first:end]
            body = part if self._settings["batch.records"] > 1 else part[0]
            self._send(json.dumps(body, default=plain_json, ensure_ascii=False).encode(), topics[first], keys[first])
            first = end

    def _send(self, body: bytes, topic: str, key: Any) -> None:
        settings = self._settings
        url = settings["http.url"].replace("${topic}", quote(topic, safe=""))
        parts = urlsplit(url.replace("${key}", quote("" if key is None else str(key), safe="")))
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        headers = {"Content-Type": "application/json", **dict(_header(text) for text in settings["http.headers"])}
        if settings["http.authorization"] is not None:
            headers["Authorization"] = settings["http.authorization"]
        try:
            connection = self._connected(parts)
            connection.request(settings["http.method"], target, body, headers)
            answer = connection.getresponse()
            said = answer.read()[:_SHOWN].decode(errors="replace")
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise Outage(f"{parts.netloc} cannot be reached: {error}.") from None
        if answer.status >= 500 or answer.status in _PATIENCE:
            raise Outage(f"{parts.netloc} answers {answer.status}: {said}")
        if answer.status in _NOT_LET_IN:
            raise ConnectorFailure(
                f"{parts.netloc} does not let the connector in ({answer.status}: {said}): check http.authorization and "
                "http.headers."
            )
        if 300 <= answer.status < 400:
            raise ConnectorFailure(
                f"{parts.netloc} answers {answer.status} and sends the connector to {answer.headers['location']}: set "
                "http.url to where records are taken."
            )
        if answer.status == http.HTTPStatus.METHOD_NOT_ALLOWED:
            raise ConnectorFailure(
                f"{parts.netloc} does not take a {settings['http.method']} there (405): check http.method and http.url."
            )
        if answer.status >= 400:
            raise BadRecords(f"{parts.netloc} answers {answer.status}: {said}")

    def _connected(self, parts: Any) -> http.client.HTTPConnection:
        if self._connection is None:
            timeout_s = self._settings["http.timeout.ms"] / 1000
            if parts.scheme == "https":
                context = ssl.create_default_context()
                self._connection = http.client.HTTPSConnection(
                    parts.hostname, parts.port, timeout=timeout_s, context=context
                )
            else:
                self._connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout_s)
        return self._connection

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _python(column: Column) -> Sequence[Any]:
    return column.data if isinstance(column.data, list) else column.data.to_pylist()
