"""Text to a schema, for every format, with what it refers to; the last ones are remembered, good or bad."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

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
_REMEMBERED_MAX = 1_000
# What was parsed is many times as large as its text.
_CHARACTERS_MAX = 8_000_000


class _Remembered:
    """The last answers. A schema is parsed before the writer looks at it, who has it from here then.

    Used by several threads: each step is one of a dict's own, and two that put at once forget too much at the worst."""

    def __init__(self) -> None:
        self._known: dict[Hashable, tuple[Parsed | InvalidSchema, int]] = {}

    def get(self, key: Hashable) -> Parsed | InvalidSchema | None:
        found = self._known.pop(key, None)
        if found is None:
            return None
        self._known[key] = found  # the last to be forgotten
        return found[0]

    def put(self, key: Hashable, answer: Parsed | InvalidSchema, characters: int) -> None:
        self._known.pop(key, None)
        self._known[key] = answer, characters
        entries = list(self._known.items())
        count, total = len(entries), sum(size for _, (_, size) in entries)
        for oldest, (_, size) in entries[:-1]:
            if count <= _REMEMBERED_MAX and total <= _CHARACTERS_MAX:
                break
            self._known.pop(oldest, None)
            count, total = count - 1, total - size


_remembered = _Remembered()


def parse(schema: SchemaText, references: tuple[Resolved, ...], *, is_new: bool) -> Parsed:
    """Raises what the API answers."""
    if schema.type not in _PARSERS:
        raise errors.invalid_schema(f"Invalid schema type {schema.type}")
    key = schema.type, schema.text, references
    answer = _remembered.get((*key, is_new))
    if answer is None and not is_new and isinstance(new := _remembered.get((*key, True)), Parsed):
        answer = new  # whoever is good as a new one is good
    if answer is None:
        answer = _parse(schema, references, is_new)
        _remembered.put((*key, is_new), answer, len(schema.text))
    if isinstance(answer, InvalidSchema):
        raise errors.invalid_schema(f"Invalid schema of type {schema.type}, details: {answer}")
    return answer


def _parse(schema: SchemaText, references: tuple[Resolved, ...], is_new: bool) -> Parsed | InvalidSchema:
    try:
        return _PARSERS[schema.type](schema.text, references, is_new=is_new)
    except InvalidSchema as error:
        return InvalidSchema(str(error))
    except RecursionError:
        return InvalidSchema("the schema is nested too deeply")


def resolve(state: RegistryState, schema: SchemaText, context: str) -> tuple[Resolved, ...]:
    """The texts behind the references, and behind theirs; `context`: of the subject that the schema belongs to.
    Raises what the API answers for one that is not there."""
    try:
        return _resolve(state, schema.type, schema.references, context, (), {})
    except RecursionError:
        raise errors.invalid_schema(
            f"Invalid schema of type {schema.type}, details: its references lead through too many schemas"
        ) from None


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
