"""Converters with a schema registry: what Confluent's have in common, with their settings.

The id of a schema stands before each value. Values are read by the schema that they were written with, so those of one
id are one piece; what is written is registered under the subject of its topic, once for each schema.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar
from urllib.parse import quote, urlsplit

import pyarrow as pa

from ottla.client.access.bearer import SETTINGS as BEARER_SETTINGS
from ottla.client.access.bearer import BearerLogin
from ottla.client.schema_registry import Refused, RegistryClient
from ottla.common.errors import OttlaError
from ottla.common.failures import Retriable
from ottla.connect.api.config import NO_DEFAULT, ConfigDef, ConfigInvalid, ConfigKey, ConfigType, Importance
from ottla.connect.api.data import Column, Schema
from ottla.connect.api.plugins import ConnectorFailure
from ottla.connect.conversion.arrow import is_null, null_count, take
from ottla.connect.conversion.converters.base import Converter, OnFailure, Piece, pieces_of
from ottla.connect.conversion.errors import DataError, RecordError
from ottla.schemas.framing import HEAD
from ottla.schemas.registered import Registered, by_id, by_version

_STRATEGIES = ("TopicNameStrategy", "RecordNameStrategy", "TopicRecordNameStrategy")
_ATTEMPTS, _PAUSE_S = 3, 0.25
_PACKAGE = "io.confluent.kafka.serializers.subject."


def _strategy(text: str) -> str | None:
    known = text.removeprefix(_PACKAGE) in _STRATEGIES
    return None if known else f"it is one of {', '.join(_PACKAGE + name for name in _STRATEGIES)}."


def _source(text: str) -> str | None:
    return None if text in ("URL", "USER_INFO") else "it is URL or USER_INFO."


def _key(name: str, kind: ConfigType, doc: str, default: Any, check: Any = None) -> ConfigKey:
    importance = Importance.HIGH if default is NO_DEFAULT else Importance.MEDIUM
    return ConfigKey(name, kind, doc, default, importance, check)


REGISTRY_SETTINGS = ConfigDef(
    (
        _key("schema.registry.url", ConfigType.LIST, "Addresses of the registry; the first is asked.", NO_DEFAULT),
        _key(
            "basic.auth.credentials.source",
            ConfigType.STRING,
            "Where the login stands: URL, in the address; USER_INFO, in basic.auth.user.info.",
            "URL",
            _source,
        ),
        _key("basic.auth.user.info", ConfigType.PASSWORD, "The login, as user:password.", None),
        _key(
            "bearer.auth.credentials.source",
            ConfigType.STRING,
            "A token logs in: STATIC_TOKEN, that of bearer.auth.token; OAUTHBEARER, one that is fetched.",
            None,
        ),
        _key("bearer.auth.token", ConfigType.PASSWORD, "The token, with STATIC_TOKEN.", None),
        _key("bearer.auth.issuer.endpoint.url", ConfigType.STRING, "Where tokens are fetched, with OAUTHBEARER.", None),
        _key("bearer.auth.client.id", ConfigType.STRING, "For whom, with OAUTHBEARER.", None),
        _key("bearer.auth.client.secret", ConfigType.PASSWORD, "The secret of bearer.auth.client.id.", None),
        _key("bearer.auth.scope", ConfigType.STRING, "The scope that is asked for, with OAUTHBEARER.", None),
        _key("bearer.auth.logical.cluster", ConfigType.STRING, "Sent along with the token.", None),
        _key("bearer.auth.identity.pool.id", ConfigType.STRING, "Sent along with the token.", None),
        _key(
            "schema.registry.ssl.truststore.location",
            ConfigType.STRING,
            "Whom to trust, for https: a file of certificates in PEM.",
            None,
        ),
        _key("auto.register.schemas", ConfigType.BOOLEAN, "Whether schemas that are written are registered.", True),
        _key(
            "use.latest.version",
            ConfigType.BOOLEAN,
            "Without auto.register.schemas: write with the latest version of the subject, not with the same schema.",
            False,
        ),
        _key(
            "key.subject.name.strategy",
            ConfigType.STRING,
            "The subject of keys: of the topic, of the record's name, or of both.",
            f"{_PACKAGE}TopicNameStrategy",
            _strategy,
        ),
        _key(
            "value.subject.name.strategy",
            ConfigType.STRING,
            "The subject of values: of the topic, of the record's name, or of both.",
            f"{_PACKAGE}TopicNameStrategy",
            _strategy,
        ),
    )
)


class RegisteredConverter(Converter):
    config_def = REGISTRY_SETTINGS
    # The registry's word for its schemas.
    kind: ClassVar[str]

    def __init__(self, settings: Mapping[str, Any], *, is_key: bool) -> None:
        super().__init__(settings, is_key=is_key)
        urls = settings["schema.registry.url"]
        if not urls:
            raise ConfigInvalid("schema.registry.url needs the address of a registry.")
        url, user = urls[0], settings["basic.auth.user.info"]
        if settings["basic.auth.credentials.source"] == "USER_INFO":
            if not user:
                raise ConfigInvalid("basic.auth.credentials.source=USER_INFO needs basic.auth.user.info.")
            url = _with_login(url, user)
        self.url, self.ca = url, settings["schema.registry.ssl.truststore.location"]
        try:
            given = {name: settings[name] for name in BEARER_SETTINGS if settings[name] is not None}
            # As with Confluent's: without a source nothing of it counts.
            self.bearer = BearerLogin.of(given) if settings["bearer.auth.credentials.source"] else None
            self.client = RegistryClient(self.url, ca=self.ca, bearer=self.bearer)
        except (OttlaError, OSError) as error:
            raise ConfigInvalid(f"schema.registry.url or its login: {error}") from None
        self._registers: bool = settings["auto.register.schemas"]
        self._uses_latest: bool = settings["use.latest.version"]
        strategy = settings["key.subject.name.strategy" if is_key else "value.subject.name.strategy"]
        self._strategy = strategy.removeprefix(_PACKAGE)
        self._known: dict[int, Registered] = {}
        self._written: dict[tuple[str, Schema], Registered] = {}

    # --- what a format does

    @abstractmethod
    def read(self, schema: Registered, data: Any, on_failure: OnFailure) -> Piece:
        """Values of one id, none of them null."""

    @abstractmethod
    def text_of(self, schema: Schema) -> str:
        """The schema as the registry keeps it. Raises RecordError."""

    @abstractmethod
    def write(self, schema: Registered, column: Column, on_failure: OnFailure) -> Any:
        """Values of one schema, none of them null."""

    # --- bytes to columns

    def decode(self, topics: Any, data: Any, on_failure: OnFailure) -> list[Piece]:
        by_number: dict[int, list[int]] = {}
        absent: list[int] = []
        for at, value in enumerate(data.to_pylist()):
            if value is None:
                absent.append(at)
            elif len(value) < HEAD.size or value[0] != 0:
                on_failure(
                    at, DataError("the value has no id of a schema before it: it was not written with a registry.")
                )
            else:
                by_number.setdefault(HEAD.unpack_from(value)[1], []).append(at)
        pieces = [piece for number, at in by_number.items() for piece in self._read(number, at, data, on_failure)]
        return pieces + pieces_of({None: (absent, [None] * len(absent))}, len(data), on_failure) if absent else pieces

    def _read(self, number: int, at: list[int], data: Any, on_failure: OnFailure) -> list[Piece]:
        places = pa.array(at, pa.int64())
        try:
            if number not in self._known:
                self._known[number] = self._asked(number)
            piece = self.read(self._known[number], data.take(places), lambda place, error: on_failure(at[place], error))
        except (Retriable, ConnectorFailure):
            raise
        except OttlaError as error:
            for place in at:
                on_failure(place, error if isinstance(error, RecordError) else DataError(str(error)))
            return []
        if len(at) == len(data) and piece.at is None:
            return [piece]
        return [Piece(piece.column, places if piece.at is None else places.take(piece.at))]

    def _asked(self, number: int) -> Registered:
        for attempt in range(_ATTEMPTS):
            try:
                found = by_id(self.client, number)
                break
            except Refused as error:
                _require_rights(error)
                if attempt == _ATTEMPTS - 1:
                    raise DataError(f"the registry has no schema {number}.") from None
                # An instance of a registry may hear of a schema a moment after its first record is there.
                time.sleep(_PAUSE_S)
        if found.type != self.kind:
            raise DataError(f"the schema {number} of the registry is of type {found.type}, not {self.kind}.")
        return found

    # --- columns to bytes

    def encode(self, topics: Any, column: Column, on_failure: OnFailure) -> Any:
        schema = column.schema
        if schema is None:
            for at, value in enumerate(column.data):
                if value is not None:
                    name = type(self).__name__
                    on_failure(at, DataError(f"{name} needs a schema, and the record has none."))
            return pa.nulls(len(column), pa.binary())
        found = topics.dictionary_encode()
        names = found.dictionary.to_pylist()
        if len(names) == 1 and not null_count(column):
            return self._encoded(names[0], schema, column, list(range(len(column))), on_failure)
        encoded: list[Any] = [None] * len(column)
        skipped, indices = is_null(column).to_pylist(), found.indices.to_pylist()
        for number, topic in enumerate(names):
            its = [place for place, which in enumerate(indices) if which == number and not skipped[place]]
            if its:
                part = self._encoded(topic, schema, take(column, pa.array(its, pa.int64())), its, on_failure)
                for place, value in zip(its, part.to_pylist(), strict=True):
                    encoded[place] = value
        return pa.array(encoded, pa.binary())

    def _encoded(self, topic: str, schema: Schema, column: Column, at: list[int], on_failure: OnFailure) -> Any:
        try:
            registered = self._for_writing(topic, schema)
            return self.write(registered, column, lambda place, error: on_failure(at[place], error))
        except (Retriable, ConnectorFailure):
            raise
        except OttlaError as error:
            for place in at:
                on_failure(place, error if isinstance(error, RecordError) else DataError(str(error)))
            return pa.nulls(len(at), pa.binary())

    def _for_writing(self, topic: str, schema: Schema) -> Registered:
        subject = self._subject(topic, schema)
        if (known := self._written.get((subject, schema))) is not None:
            return known
        text = self.text_of(schema)
        try:
            if self._uses_latest and not self._registers:
                found = by_version(self.client, subject, "latest")
            else:
                body = {"schema": text, "schemaType": self.kind}
                path = ("subjects", subject, "versions") if self._registers else ("subjects", subject)
                found = self.registered(int(self.client.post(body, *path)["id"]), text, subject)
        except Refused as error:
            _require_rights(error)
            raise DataError(f"the subject '{subject}' does not take the schema: {error}") from None
        self._written[subject, schema] = found
        return found

    def registered(self, number: int, text: str, subject: str) -> Registered:
        return Registered(number, self.kind, text, (), subject)

    def _subject(self, topic: str, schema: Schema) -> str:
        if self._strategy == "TopicNameStrategy":
            return f"{topic}-{'key' if self.is_key else 'value'}"
        name = self.record_name(schema)
        return name if self._strategy == "RecordNameStrategy" else f"{topic}-{name}"

    def record_name(self, schema: Schema) -> str:
        if not schema.name:
            raise DataError(
                f"{self._strategy} needs the name of a schema, and the record's has none: SetSchemaMetadata."
            )
        return schema.name


def _require_rights(error: Refused) -> None:
    """A login that is missing or wrong is no fault of a record, however many are tolerated."""
    if error.code // 100 in (401, 403) or error.code in (401, 403):
        raise ConnectorFailure(
            f"{error} Set basic.auth.user.info or bearer.auth.token for this converter, or ask for the right."
        ) from None


def _with_login(url: str, user: str) -> str:
    parts = urlsplit(url)
    name, _, password = user.partition(":")
    login, host = f"{quote(name, safe='')}:{quote(password, safe='')}", parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{login}@{host}{parts.path}"
