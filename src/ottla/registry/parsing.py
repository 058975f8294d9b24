"""Text to a schema, for every format, with what it refers to; the last ones are remembered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from ottla.common.schemas import InvalidSchema
from ottla.registry import errors
from ottla.registry.avro_format import parse_avro
from ottla.registry.json_schema.format import parse_json_schema
from ottla.registry.names import meant_in, parse_subject
from ottla.registry.parsed import Parsed, Resolved
from ottla.registry.protobuf.format import parse_protobuf
from ottla.registry.schemas import AVRO, JSON, PROTOBUF, Reference, SchemaText
from ottla.registry.state import RegistryState

_PARSERS: dict[str, Callable[..., Parsed]] = {AVRO: parse_avro, JSON: parse_json_schema, PROTOBUF: parse_protobuf}
_REMEMBERED = 1_000


def parse(schema: SchemaText, references: tuple[Resolved, ...], *, is_new: bool) -> Parsed:
    """Raises what the API answers."""
    if schema.type not in _PARSERS:
        raise errors.invalid_schema(f"Invalid schema type {schema.type}")
    try:
        return _parse(schema.type, schema.text, references, is_new)
    except InvalidSchema as error:
        raise errors.invalid_schema(f"Invalid schema of type {schema.type}, details: {error}") from None
    except RecursionError:
        raise errors.invalid_schema(
            f"Invalid schema of type {schema.type}, details: the schema is nested too deeply"
        ) from None


@lru_cache(_REMEMBERED)
def _parse(kind: str, text: str, references: tuple[Resolved, ...], is_new: bool) -> Parsed:
    return _PARSERS[kind](text, references, is_new=is_new)


def resolve(state: RegistryState, schema: SchemaText, context: str) -> tuple[Resolved, ...]:
    """The texts behind the references, and behind theirs; `context`: of the subject that the schema belongs to.
    Raises what the API answers for one that is not there."""
    return _resolve(state, schema.type, schema.references, context, (), {})


def _resolve(
    state: RegistryState,
    kind: str,
    references: Sequence[Reference],
    context: str,
    above: tuple[tuple[str, int], ...],
    known: dict[tuple[str, int], tuple[Resolved, ...]],
) -> tuple[Resolved, ...]:
    """`known`: what the schemas that were met before refer to."""
    resolved: list[Resolved] = []
    for reference in references:
        if not reference.name or not reference.subject:
            raise errors.invalid_schema(
                f"Invalid schema of type {kind}, details: a reference without a name or subject"
            )
        where = (meant_in(context, reference.subject), reference.version)
        if where in above:
            raise errors.invalid_schema(
                f'Invalid schema of type {kind}, details: the reference to subject "{reference.subject}" and version '
                f"{reference.version} goes in a circle"
            )
        found = (
            state.latest(where[0]) if reference.version < 0 else state.subjects.get(where[0], {}).get(reference.version)
        )
        if found is None:
            raise errors.invalid_schema(
                f"Invalid schema of type {kind}, details: No schema reference found for subject "
                f'"{where[0]}" and version {reference.version}'
            )
        if found.schema.type != kind:
            raise errors.invalid_schema(
                f'Invalid schema of type {kind}, details: subject "{reference.subject}" and version '
                f"{reference.version} is a schema of type {found.schema.type}"
            )
        if where not in known:
            known[where] = _resolve(
                state, kind, found.schema.references, parse_subject(where[0]).context, (*above, where), known
            )
        resolved.append(Resolved(reference.name, found.schema.text, known[where]))
    return tuple(resolved)
