"""Serdes of a schema registry, for topologies: `builder.stream("orders", value=RegistrySerde(URL))`."""

from __future__ import annotations

from typing import Any

from ottla.client.access.bearer import BearerLogin
from ottla.schemas.rows import SubjectValues


class RegistrySerde:
    """Values as Python has them (dict, list, str, ...) with schemas of a registry: Avro, JSON Schema, Protobuf.

    What is read has the schema that its id names, read by the reader's if one is given. What is written has the latest
    schema of the subject, TOPIC-value or TOPIC-key, or the one that is given here and registered when it is first used.
    It travels to executors as its settings, and asks the registry there.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        schema: str | None = None,
        ca: str | None = None,
        is_key: bool = False,
        bearer: BearerLogin | None = None,
    ) -> None:
        """`url`: OTTLA_REGISTRY_URL or localhost if it is not said. `schema`: Avro, as text."""
        self.url, self.schema, self.ca, self.is_key, self.bearer = url, schema, ca, is_key, bearer
        self._codec: SubjectValues | None = None

    def serialize(self, topic: str, value: Any) -> bytes:
        return self._opened().encode(self._subject(topic), value)

    def deserialize(self, topic: str, data: bytes) -> Any:
        return self._opened().decode(self._subject(topic), data)

    def _subject(self, topic: str) -> str:
        return f"{topic}-{'key' if self.is_key else 'value'}"

    def _opened(self) -> SubjectValues:
        if self._codec is None:
            self._codec = SubjectValues(self.url, self.ca, self.schema, self.bearer)
        return self._codec

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_codec": None}

    def __repr__(self) -> str:
        return f"RegistrySerde({'key' if self.is_key else 'value'})"
