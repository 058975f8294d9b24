"""Whether a schema gets along with the versions of a subject, by the level that counts there."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ottla.common.schemas import InvalidSchema
from ottla.registry import levels
from ottla.registry.errors import invalid_schema
from ottla.registry.levels import Earlier
from ottla.registry.names import parse_subject
from ottla.registry.parsing import parse, resolve
from ottla.registry.schemas import SchemaText, Version
from ottla.registry.state import RegistryState


def compatibility_messages(
    state: RegistryState, subject: str, schema: SchemaText, only: Sequence[Version] | None = None
) -> list[str]:
    """Why it does not; empty if it does. `only`: these versions, instead of those that the level names."""
    level = state.level(subject)
    versions = {version.version: version for version in only or _comparable(state, subject, schema)}
    wanted = list(versions) if only is not None and level != "NONE" else levels.compared_with(level, list(versions))
    if not wanted:
        return []
    new = parse(schema, resolve(state, schema, parse_subject(subject).context), is_new=True)
    earlier = (_earlier(state, versions[number]) for number in wanted)
    try:
        return levels.check(level, schema.type, new, list(earlier))
    except InvalidSchema as error:
        raise invalid_schema(f"Invalid schema of type {schema.type}, details: {error}") from None
    except RecursionError:
        raise invalid_schema(
            f"Invalid schema of type {schema.type}, details: its types are nested too deeply to be compared"
        ) from None


def _earlier(state: RegistryState, version: Version) -> Earlier:
    schema = version.schema
    references = resolve(state, schema, parse_subject(version.subject).context)
    return Earlier(version.version, schema.type, schema.text, parse(schema, references, is_new=False))


def _comparable(state: RegistryState, subject: str, schema: SchemaText) -> list[Version]:
    """Versions of the same compatibility group, if there are groups: a property of the metadata tells."""
    versions = list(state.versions(subject).values())
    group = state.config(subject).get("compatibilityGroup")
    if not group:
        return versions
    return [version for version in versions if _property(version.schema, group) == _property(schema, group)]


def _property(schema: SchemaText, name: str) -> str | None:
    metadata = json.loads(schema.metadata) if schema.metadata else {}
    value = (metadata.get("properties") or {}).get(name)
    return None if value is None else str(value)
