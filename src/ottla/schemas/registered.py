"""A schema as a registry gives it, with the texts that it refers to."""

from __future__ import annotations

from typing import Any, NamedTuple

from ottla.avro.parse import Parser, read_json
from ottla.avro.schema import Schema
from ottla.client.schema_registry import RegistryClient

AVRO, JSON, PROTOBUF = FORMATS = ("AVRO", "JSON", "PROTOBUF")


class Registered(NamedTuple):
    id: int
    type: str
    # Of Protobuf: the bytes of its descriptor, in base64.
    text: str
    # (name, text), deepest first.
    references: tuple[tuple[str, str], ...] = ()
    subject: str = ""
    version: int = 0


def by_version(client: RegistryClient, subject: str, version: int | str) -> Registered:
    found = client.get("subjects", subject, "versions", version, format="serialized")
    return _registered(client, found, int(found["id"]), subject, int(found["version"]))


def by_id(client: RegistryClient, number: int, subject: str | None = None) -> Registered:
    """`subject`: whose context the id belongs to."""
    found = client.get("schemas", "ids", number, format="serialized", subject=subject)
    return _registered(client, found, number, subject or "", 0)


def _registered(client: RegistryClient, found: dict[str, Any], number: int, subject: str, version: int) -> Registered:
    references = tuple(_references(client, found, set()).items())
    return Registered(number, found.get("schemaType") or AVRO, found["schema"], references, subject, version)


def _references(client: RegistryClient, schema: dict[str, Any], met: set[tuple[str, str, int]]) -> dict[str, str]:
    """`met`: those that were followed already. Many schemas may refer to the same one."""
    found: dict[str, str] = {}
    for reference in schema.get("references") or ():
        name, subject, version = reference["name"], reference["subject"], reference["version"]
        if (name, subject, version) in met:
            continue
        met.add((name, subject, version))
        referred = client.get("subjects", subject, "versions", version, format="serialized", deleted=True)
        found |= _references(client, referred, met)
        found[name] = referred["schema"]
    return found


def parse_avro(registered: Registered) -> Schema:
    """Raises InvalidSchema."""
    known: dict[str, Schema] = {}
    for _, text in registered.references:
        parser = Parser(known, checks_defaults=False)
        parser.parse(read_json(text))
        known |= parser.defined
    return Parser(known, checks_defaults=False).parse(read_json(registered.text))
