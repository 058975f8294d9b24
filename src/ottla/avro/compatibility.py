"""Whether records of a writer's schema can be read with a reader's: the rules of Java's `SchemaCompatibility`.

A pair that is being compared already counts as compatible, which is how schemas that contain themselves end. Names are
compared without their namespaces, as Java does; a reader's aliases count for fields.
"""

from __future__ import annotations

from ottla.avro.schema import Field, Schema
from ottla.avro.text import dump
from ottla.common.schemas import NEW_READS_OLD, Difference, Effort, Sides

# What a reader of the first type also reads.
_PROMOTIONS = {
    "long": ("int",),
    "float": ("int", "long"),
    "double": ("int", "long", "float"),
    "bytes": ("string",),
    "string": ("bytes",),
}
# Pairs of types, and differences told: all branches of a union may have to be compared with all of another.
_STEPS_MAX = 1_000_000


def differences(reader: Schema, writer: Schema, sides: Sides = NEW_READS_OLD) -> list[Difference]:
    """Nothing, if a reader of one schema understands what a writer of the other wrote."""
    return _Comparison(sides).compare(reader, writer, "")


class _Comparison:
    def __init__(self, sides: Sides) -> None:
        self._sides = sides
        self._effort = Effort(_STEPS_MAX)
        self._memo: dict[tuple[int, int], list[Difference]] = {}

    def compare(self, reader: Schema, writer: Schema, path: str) -> list[Difference]:
        self._effort.spend()
        pair = (id(reader), id(writer))
        if pair not in self._memo:
            self._memo[pair] = []
            found = self._compare(reader, writer, path)
            self._effort.spend(len(found))  # what is wrong below is told again on each way that leads there
            # Each once: a type that is used twice, by one that is used twice, and so on, has the same to say each time.
            self._memo[pair] = list(dict.fromkeys(found))
        return self._memo[pair]

    def _compare(self, reader: Schema, writer: Schema, path: str) -> list[Difference]:
        if _kind(reader) == _kind(writer):
            return self._same_kind(reader, writer, path)
        if writer.type == "union":
            return [found for branch in writer.branches for found in self.compare(reader, branch, path)]
        if reader.type == "union":
            if any(not self.compare(branch, writer, f"{path}/{i}") for i, branch in enumerate(reader.branches)):
                return []
            return [_missing_branch(writer, path, self._sides)]
        if writer.type in _PROMOTIONS.get(reader.type, ()):
            return []
        return [
            Difference(
                "TYPE_MISMATCH",
                path or "/",
                f"The type (path '{path or '/'}') of a field in the {self._sides.reader} schema does not match with "
                f"the {self._sides.writer} schema",
                f"reader type: {_shown(reader)} not compatible with writer type: {_shown(writer)}",
            )
        ]

    def _same_kind(self, reader: Schema, writer: Schema, path: str) -> list[Difference]:
        kind = _kind(reader)
        if kind == "array":
            return self.compare(reader.element(), writer.element(), f"{path}/items")
        if kind == "map":
            return self.compare(reader.element(), writer.element(), f"{path}/values")
        if kind == "fixed":
            return [*_names(reader, writer, path), *_sizes(reader, writer, path, self._sides)]
        if kind == "enum":
            return [*_names(reader, writer, path), *_symbols(reader, writer, path, self._sides)]
        if kind == "record":
            return [*_names(reader, writer, path), *self._fields(reader, writer, path)]
        if kind == "union":
            return [
                _missing_branch(branch, f"{path}/{number}", self._sides)
                for number, branch in enumerate(writer.branches)
                if self.compare(reader, branch, path)
            ]
        return []

    def _fields(self, reader: Schema, writer: Schema, path: str) -> list[Difference]:
        found: list[Difference] = []
        theirs = {its.name: its for its in writer.fields}
        for number, mine in enumerate(reader.fields):
            at = f"{path}/fields/{number}"
            match = _counterpart(mine, theirs)
            if match is not None:
                found += self.compare(mine.schema, match.schema, f"{at}/type")
            elif not mine.has_default and not (mine.schema.type == "enum" and mine.schema.enum_default is not None):
                text = (
                    f"The field '{mine.name}' at path '{at}' in the {self._sides.reader} schema has no default value "
                    f"and is missing in the {self._sides.writer} schema"
                )
                found.append(Difference("READER_FIELD_MISSING_DEFAULT_VALUE", at, text, mine.name))
            elif not mine.has_default:
                found += self.compare(mine.schema, writer, f"{at}/type")
        return found


def _kind(schema: Schema) -> str:
    return "record" if schema.is_record else schema.type


def _counterpart(mine: Field, theirs: dict[str, Field]) -> Field | None:
    for name in (mine.name, *mine.aliases):
        if name in theirs:
            return theirs[name]
    return None


def _names(reader: Schema, writer: Schema, path: str) -> list[Difference]:
    assert reader.name is not None and writer.name is not None
    if reader.name.simple == writer.name.simple or writer.full_name in {alias.full for alias in reader.aliases}:
        return []
    text = f"The name of the schema has changed (path '{path}/name')"
    return [Difference("NAME_MISMATCH", f"{path}/name", text, f"expected: {writer.full_name}")]


def _sizes(reader: Schema, writer: Schema, path: str, sides: Sides) -> list[Difference]:
    if reader.size == writer.size:
        return []
    text = (
        f"The size of FIXED type field at path '{path}/size' in the {sides.reader} schema does not match with the "
        f"{sides.writer} schema"
    )
    return [Difference("FIXED_SIZE_MISMATCH", f"{path}/size", text, f"expected: {writer.size}, found: {reader.size}")]


def _symbols(reader: Schema, writer: Schema, path: str, sides: Sides) -> list[Difference]:
    missing = sorted(set(writer.symbols) - set(reader.symbols))
    if not missing or reader.enum_default is not None:
        return []
    text = (
        f"The {sides.reader} schema is missing enum symbols '[{', '.join(missing)}]' at path '{path}/symbols' in the "
        f"{sides.writer} schema"
    )
    return [Difference("MISSING_ENUM_SYMBOLS", f"{path}/symbols", text, f"[{', '.join(missing)}]")]


def _missing_branch(writer: Schema, path: str, sides: Sides) -> Difference:
    text = (
        f"The {sides.reader} schema is missing a type inside a union field at path '{path or '/'}' in the "
        f"{sides.writer} schema"
    )
    return Difference(
        "MISSING_UNION_BRANCH", path or "/", text, f"reader union lacking writer type: {writer.type.upper()}"
    )


def _shown(schema: Schema) -> str:
    return schema.full_name if schema.name is not None else dump(schema.type).strip('"').upper()
