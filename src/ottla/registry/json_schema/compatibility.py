"""Whether values of an earlier JSON Schema are valid for a newer one, by Confluent's rules and under their names.

A rule looks at one keyword and says whether the reader allows less than the writer did. Objects and arrays are the hard
part: whether a property may come or go depends on what else may be there (their content model), see `contents.py`.
Combined schemas are matched part by part: each that the writer may have written needs one that reads it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from ottla.common.schemas import NEW_READS_OLD, Difference, Effort, Sides
from ottla.registry.json_schema import contents
from ottla.registry.json_schema.node import Node

_SUMS = ("oneOf", "anyOf")
_COMBINED = ("allOf", *_SUMS, "not")
# Pairs of places that are looked at.
_PAIRS_MAX = 200_000
_NOWHERE = 1 << 30
# Keyword, name of its rules, whether a larger value allows more.
_BOUNDS = (
    ("maxLength", "MAX_LENGTH", True),
    ("minLength", "MIN_LENGTH", False),
    ("maximum", "MAXIMUM", True),
    ("minimum", "MINIMUM", False),
    ("exclusiveMaximum", "EXCLUSIVE_MAXIMUM", True),
    ("exclusiveMinimum", "EXCLUSIVE_MINIMUM", False),
    ("maxProperties", "MAX_PROPERTIES", True),
    ("minProperties", "MIN_PROPERTIES", False),
    ("maxItems", "MAX_ITEMS", True),
    ("minItems", "MIN_ITEMS", False),
    ("maxContains", "MAX_CONTAINS", True),
    ("minContains", "MIN_CONTAINS", False),
)


def differences(reader: Node, writer: Node, sides: Sides = NEW_READS_OLD) -> list[Difference]:
    return Comparison(sides).compare(reader, writer, "#")


class Comparison:
    def __init__(self, sides: Sides = NEW_READS_OLD) -> None:
        self._sides = sides
        self.effort = Effort(_PAIRS_MAX)
        # Pairs that are being compared count as compatible, which is how schemas that contain themselves end.
        self._under_way: dict[tuple[int, int], int] = {}
        # The outermost of them that was met below the place where we are: what was found there leans on it.
        self._leans_on = _NOWHERE
        # What was found, with the nodes, so that no others get their keys.
        self._known: dict[tuple[int, int], tuple[list[Difference], Node, Node]] = {}

    def refusal(self, rule: str, path: str, what: str) -> Difference:
        text = (
            f"{what} at path '{path}' in the {self._sides.reader} schema ({self._sides.writer} schema: see oldSchema)"
        )
        if self._sides.writer == "new":
            text = f"{what} at path '{path}', seen from the new schema to the old one"
        return Difference(rule, path, text)

    def compare(self, reader: Node, writer: Node, path: str) -> list[Difference]:
        self.effort.spend()
        if reader.is_empty or writer.is_false:
            return []
        if reader.is_false:
            return [self.refusal("TYPE_CHANGED", path, "No value is valid any more")]
        pair = (reader.key, writer.key)
        if pair in self._under_way:
            self._leans_on = min(self._leans_on, self._under_way[pair])
            return []
        if pair in self._known:
            return self._known[pair][0]
        return self._compare(reader, writer, path, pair)

    def _compare(self, reader: Node, writer: Node, path: str, pair: tuple[int, int]) -> list[Difference]:
        depth = len(self._under_way)
        self._under_way[pair] = depth
        leans_on, self._leans_on = self._leans_on, _NOWHERE
        # Each once: what is referred to twice has the same to say twice.
        found = list(dict.fromkeys([*self._combined(reader, writer, path), *self._plain(reader, writer, path)]))
        del self._under_way[pair]
        if found or self._leans_on >= depth:
            self._known[pair] = found, reader, writer
        if self._leans_on >= depth:
            self._leans_on = _NOWHERE
        self._leans_on = min(leans_on, self._leans_on)
        return found

    def fits(self, reader: Node, writer: Node, path: str) -> bool:
        return not self.compare(reader, writer, path)

    # --- combined schemas

    def _combined(self, reader: Node, writer: Node, path: str) -> list[Difference]:
        found: list[Difference] = []
        for word in _SUMS:
            if branches := reader.nodes(word):
                found += self._sum(branches, writer, word, path)
        if parts := reader.nodes("allOf"):
            found += self._product(parts, writer, path)
        if (forbidden := reader.node("not")) is not None:
            before = writer.node("not")
            if before is None or not self.fits(before, forbidden, f"{path}/not"):
                found.append(self.refusal("NOT_TYPE_EXTENDED", f"{path}/not", "More values are forbidden"))
        return found

    def _sum(self, branches: Sequence[Node], writer: Node, word: str, path: str) -> list[Difference]:
        theirs = next((nodes for sum_word in _SUMS if (nodes := writer.nodes(sum_word))), [])
        at = f"{path}/{word}"
        if word == "oneOf" and writer.nodes("anyOf"):
            return [self.refusal("COMBINED_TYPE_CHANGED", at, "anyOf became oneOf")]
        if not theirs:
            if any(self.fits(branch, writer, at) for branch in branches):
                return []
            if any(self.fits(branch, part, at) for part in writer.nodes("allOf") for branch in branches):
                return []
            return [self.refusal("TYPE_CHANGED", at, f"No branch of {word} reads what was valid before")]
        if matched(len(theirs), len(branches), lambda row, place: self.fits(branches[place], theirs[row], at)):
            return []
        rule = "SUM_TYPE_NARROWED" if len(branches) < len(theirs) else "COMBINED_TYPE_SUBSCHEMAS_CHANGED"
        return [self.refusal(rule, at, f"A branch of {word} that was there is not read any more")]

    def _product(self, parts: Sequence[Node], writer: Node, path: str) -> list[Difference]:
        theirs, at = writer.nodes("allOf") or [writer], f"{path}/allOf"
        before = [*theirs, writer.without("allOf")]
        if matched(len(parts), len(before), lambda row, place: self.fits(parts[row], before[place], at)):
            return []
        if all(any(self.fits(mine, their, at) for their in theirs) for mine in parts):
            return []
        rule = "PRODUCT_TYPE_EXTENDED" if len(parts) > len(theirs) else "COMBINED_TYPE_SUBSCHEMAS_CHANGED"
        return [self.refusal(rule, at, "A part of allOf demands more than before")]

    # --- everything else

    def _plain(self, reader: Node, writer: Node, path: str) -> list[Difference]:
        base = reader.without(*_COMBINED)
        if base.is_empty:
            return []
        alone = self._keywords(base, writer, path)
        if not alone:
            return []
        # What the writer's branches demand may be what is demanded now.
        for word in _SUMS:
            branches = writer.nodes(word)
            if branches and all(not self._keywords(base, branch, path) for branch in branches):
                return []
        if any(not self._keywords(base, part, path) for part in writer.nodes("allOf")):
            return []
        return alone

    def _keywords(self, reader: Node, writer: Node, path: str) -> list[Difference]:
        if found := self._types(reader, writer, path):
            return found
        return [
            *self._values(reader, writer, path),
            *self._bounds(reader, writer, path),
            *self._pattern(reader, writer, path),
            *self._multiple(reader, writer, path),
            *contents.compare_object(self, reader, writer, path),
            *contents.compare_array(self, reader, writer, path),
        ]

    def _types(self, reader: Node, writer: Node, path: str) -> list[Difference]:
        mine, theirs = reader.types(), writer.types()
        if mine is None:
            return []
        allowed = mine | {"integer"} if "number" in mine else mine
        if theirs is not None and theirs <= allowed:
            return []
        wide = theirs is None or bool(theirs & allowed) or ("number" in theirs and "integer" in mine)
        before = "any" if theirs is None else ", ".join(sorted(theirs))
        what = f"The type was {before} and is {', '.join(sorted(mine))}"
        return [self.refusal("TYPE_NARROWED" if wide else "TYPE_CHANGED", path, what)]

    def _values(self, reader: Node, writer: Node, path: str) -> list[Difference]:
        mine, theirs = reader.values(), writer.values()
        if mine is None:
            return []
        at = f"{path}/{'const' if reader.get('enum') is None else 'enum'}"
        allowed = {json.dumps(value, sort_keys=True) for value in mine}
        before = None if theirs is None else {json.dumps(value, sort_keys=True) for value in theirs}
        if before is not None and before <= allowed:
            return []
        rule = "ENUM_ARRAY_NARROWED" if before is None or allowed < before else "ENUM_ARRAY_CHANGED"
        return [self.refusal(rule, at, "Values that were allowed are not any more")]

    def _bounds(self, reader: Node, writer: Node, path: str) -> list[Difference]:
        found: list[Difference] = []
        for word, rule, larger_is_more in _BOUNDS:
            mine, theirs = _bound(reader, word), _bound(writer, word)
            if mine is None or mine == theirs:
                continue
            if theirs is None:
                if word in ("minLength", "minItems", "minProperties", "minContains") and mine <= 0:
                    continue
                found.append(self.refusal(f"{rule}_ADDED", f"{path}/{word}", f"{word} {mine} is new"))
            elif (mine > theirs) != larger_is_more:
                change = "INCREASED" if mine > theirs else "DECREASED"
                what = f"{word} was {theirs} and is {mine}"
                found.append(self.refusal(f"{rule}_{change}", f"{path}/{word}", what))
        return found

    def _pattern(self, reader: Node, writer: Node, path: str) -> list[Difference]:
        mine, theirs = reader.get("pattern"), writer.get("pattern")
        if mine is None or mine == theirs:
            return []
        rule, what = (
            ("PATTERN_ADDED", "A pattern is new") if theirs is None else ("PATTERN_CHANGED", "The pattern changed")
        )
        return [self.refusal(rule, f"{path}/pattern", what)]

    def _multiple(self, reader: Node, writer: Node, path: str) -> list[Difference]:
        mine, theirs = reader.get("multipleOf"), writer.get("multipleOf")
        if mine is None or mine == theirs:
            return []
        at = f"{path}/multipleOf"
        if theirs is None:
            return [self.refusal("MULTIPLE_OF_ADDED", at, f"multipleOf {mine} is new")]
        # As they are written: 0.3 is a multiple of 0.1.
        now, earlier = Fraction(str(mine)), Fraction(str(theirs))
        if earlier % now == 0:
            return []
        rule = "MULTIPLE_OF_EXPANDED" if now % earlier == 0 else "MULTIPLE_OF_CHANGED"
        return [self.refusal(rule, at, f"multipleOf was {theirs} and is {mine}")]


def _bound(node: Node, word: str) -> Any:
    """Draft 4 says `exclusiveMaximum: true` beside a maximum; later drafts give it the number. Drafts that do not know
    a word take anything behind it."""
    value = node.get(word)
    if word.startswith("exclusive"):
        plain = word.removeprefix("exclusive").lower()
        value = node.get(plain) if value is True else None if value is False else value
    elif word in ("maximum", "minimum") and node.get(f"exclusive{word.capitalize()}") is True:
        return None
    return value if isinstance(value, int | float) else None


def matched(rows: int, columns: int, fits: Callable[[int, int], bool]) -> bool:
    """Whether each row can have a column of its own (augmenting paths). The one of the same number is tried first."""
    if rows > columns:
        return False
    owner: dict[int, int] = {}

    def place(row: int, tried: set[int]) -> bool:
        for column in (row, *range(row), *range(row + 1, columns)):
            if column not in tried and fits(row, column):
                tried.add(column)
                if column not in owner or place(owner[column], tried):
                    owner[column] = row
                    return True
        return False

    return all(place(row, set()) for row in range(rows))
