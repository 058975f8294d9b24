"""Which registry, and which of its schemas, a stream is read or written with."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from ottla.client.access.bearer import BearerLogin
from ottla.client.schema_registry import DEFAULT_URL, URL_VARIABLE, Refused, RegistryClient
from ottla.common.errors import OttlaError
from ottla.schemas.registered import AVRO, FORMATS, Registered, by_version

_NOT_FOUND = (40401, 40402)


def _default_url() -> str:
    return os.environ.get(URL_VARIABLE) or DEFAULT_URL


@dataclass(frozen=True)
class SchemaRegistry:
    """`SchemaRegistry("https://user:password@host:8081")`; without an address OTTLA_REGISTRY_URL, or localhost.

    By itself it means the latest version of the subject that belongs to a topic (`orders-value` for `orders`);
    `registry.of("some-subject", version=3)` means that one. It travels to executors as the value that it is.
    """

    url: str = field(default_factory=_default_url)
    # PEM: whom to trust, for https.
    ca: str | None = None
    subject: str | None = None
    version: int | str = "latest"
    # Which message of a Protobuf file; the first one if it is not said.
    message: str | None = None
    # Of what is written: register the schema that follows from the columns. If not, the version above is written.
    auto_register: bool = True
    # Of what is registered: AVRO, JSON or PROTOBUF.
    format: str = AVRO
    # PEM with a key: who we are, where the registry asks for that. Executors need the file, too.
    certificate: str | None = None
    # A token that logs in: BearerLogin.of({"bearer.auth.token": ...}).
    bearer: BearerLogin | None = None

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            raise OttlaError(f"a schema's format is {', '.join(FORMATS[:-1])} or {FORMATS[-1]}, not '{self.format}'.")
        self.client()  # raises for an address that is none

    def __repr__(self) -> str:
        parts = urlsplit(self.url)
        about = f", subject={self.subject!r}, version={self.version!r}" if self.subject else ""
        return f"SchemaRegistry({parts.scheme}://{parts.netloc.rpartition('@')[2]}{about})"

    def of(self, subject: str, version: int | str = "latest", *, message: str | None = None) -> SchemaRegistry:
        return replace(self, subject=subject, version=version, message=message or self.message)

    def for_topic(self, topic: str, part: str = "value") -> SchemaRegistry:
        """`part`: of the topic's records, "key" or "value". Raises OttlaError where it is not plain which subject is
        meant."""
        if self.subject is not None:
            return self
        if "," in topic:
            raise OttlaError(
                f"'{topic}' are several topics: say which subject their schema has, as in "
                f'registry.of("orders-{part}").'
            )
        return replace(self, subject=f"{topic}-{part}")

    def client(self) -> RegistryClient:
        return RegistryClient(self.url, ca=self.ca, certificate=self.certificate, bearer=self.bearer)

    def schema_if_any(self) -> Registered | None:
        assert self.subject is not None
        try:
            return by_version(self.client(), self.subject, self.version)
        except Refused as error:
            if error.code not in _NOT_FOUND:
                raise
            return None

    def schema(self) -> Registered:
        """Raises OttlaError, which says what to do."""
        found = self.schema_if_any()
        if found is None:
            which = "" if self.version == "latest" else f" version {self.version}"
            raise OttlaError(
                f"the registry has no schema '{self.subject}'{which}: register one, as with "
                f"`ottla schema register {self.subject} FILE`, or name another with registry.of(SUBJECT)."
            )
        return found
