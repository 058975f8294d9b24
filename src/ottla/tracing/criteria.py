"""What two records have in common: a key, a trace id, a header, a field of a JSON value. PURE.

    key               the key, byte for byte
    traceparent       the trace id of W3C's header `traceparent`: 00-TRACEID-PARENTID-01
    header:NAME       the last header of this name
    json:PATH         a field of the value: json:order.id, json:$.items[0].sku

The value of any of them is bytes, so that what is a key in one topic and a number in the JSON of another is the same:
text as UTF-8, numbers and true and false as JSON writes them. null, objects and arrays have no value.

Records come as the columns of the kernel. A test is one pass over a column; JSON is parsed only where the text of the
value stands in the bytes, or might stand there escaped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ottla.common.errors import OttlaError

TRACEPARENT = "traceparent"
# version-traceid-parentid-flags, all lower case by W3C's rule.
_TRACEPARENT = re.compile(rb"[0-9a-f]{2}-(?P<id>[0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}.*")
_TRACE_ID = slice(3, 35)
_STEP = re.compile(r"\.?(?P<name>[^.\[\]]+)|\[(?P<index>-?\d+)\]|\[(?P<quote>[\"'])(?P<quoted>.*?)(?P=quote)\]")
# A backslash may hide any character, an exponent any number.
_EXPONENT = rb"[0-9][eE][-+0-9]"
# A registry's JSON: a zero, and the number of a schema.
_FRAME_BYTES = 5
KINDS = ("key", TRACEPARENT, "header:NAME", "json:PATH")

Headers = Sequence[tuple[str, bytes | None]]


@dataclass(frozen=True)
class Criterion:
    """`name`: of a header. `path`: of a JSON field."""

    text: str
    kind: str
    name: str = ""
    path: tuple[str | int, ...] = ()

    @property
    def needs_headers(self) -> bool:
        return self.kind in ("header", TRACEPARENT)

    def value_of(self, key: bytes | None, value: bytes | None, headers: Headers) -> bytes | None:
        if self.kind == "key":
            return key
        if self.kind == "json":
            return json_value(value, self.path)
        name = TRACEPARENT if self.kind == TRACEPARENT else self.name
        found = next((content for present, content in reversed(headers) if present == name), None)
        if self.kind == "header" or found is None:
            return found
        match = _TRACEPARENT.fullmatch(found)
        return None if match is None else match["id"]

    def matches(self, columns: Sequence[Any], wanted: bytes) -> pa.Array:
        """The rows of a piece (key, value, offset, timestamp, timestamp type, headers) whose value is this one."""
        rows = len(columns[0])
        if self.kind == "key":
            return _rows_of(pc.equal(columns[0], pa.scalar(wanted, pa.binary())))
        if self.kind == "json":
            return self._json_matches(columns[1], wanted)
        parents, names, contents = flat_headers(columns[5])
        name = TRACEPARENT if self.kind == TRACEPARENT else self.name
        is_meant = pc.equal(names, name)
        parents, contents = parents.filter(is_meant), contents.filter(is_meant)
        if self.kind == TRACEPARENT:
            contents = pc.binary_slice(contents, _TRACE_ID.start, _TRACE_ID.stop)
        # The last header of a name counts: of those that match, one that another follows does not.
        is_last = _is_last(parents)
        found = parents.filter(
            pc.and_(is_last, pc.fill_null(pc.equal(contents, pa.scalar(wanted, pa.binary())), False))
        )
        return found if rows else pa.array([], pa.int64())

    def _json_matches(self, values: pa.Array, wanted: bytes) -> pa.Array:
        # A regular expression over everything takes longer than all the rest: only numbers need one.
        may_be = pc.or_(pc.match_substring(values, wanted), pc.match_substring(values, b"\\"))
        if _is_number(wanted):
            may_be = pc.or_(may_be, pc.match_substring_regex(values, _EXPONENT))
        candidates = _rows_of(may_be)
        chosen = values.take(candidates).to_pylist()
        found = [
            row
            for row, value in zip(candidates.to_pylist(), chosen, strict=True)
            if json_value(value, self.path) == wanted
        ]
        return pa.array(found, pa.int64())


def parse_criterion(text: str) -> Criterion:
    """Raises OttlaError."""
    kind, colon, rest = text.partition(":")
    if not colon and kind in ("key", TRACEPARENT):
        return Criterion(text, kind)
    if kind == "header" and rest:
        return Criterion(text, kind, name=rest)
    if kind == "json" and rest:
        return Criterion(text, kind, path=parse_path(rest))
    raise OttlaError(f"a record cannot be followed by '{text}': choose one of {', '.join(KINDS)}.")


def parse_path(text: str) -> tuple[str | int, ...]:
    """`order.items[0].id`, `$.order["odd name"]`. Raises OttlaError."""
    steps: list[str | int] = []
    rest = text.removeprefix("$")
    at = 0
    while at < len(rest):
        match = _STEP.match(rest, at)
        if match is None:
            raise OttlaError(f"'{text}' is not a path into JSON: write order.id, items[0].sku or $[\"odd name\"].")
        steps.append(int(match["index"]) if match["index"] is not None else match["quoted"] or match["name"])
        at = match.end()
    if not steps:
        raise OttlaError(f"'{text}' names no field: write order.id, items[0].sku or $[\"odd name\"].")
    return tuple(steps)


def json_value(value: bytes | None, path: Sequence[str | int]) -> bytes | None:
    """The field as bytes; None where the value is no JSON or has no such field."""
    if not value:
        return None
    if value[0] == 0 and value[_FRAME_BYTES : _FRAME_BYTES + 1] in (b"{", b"["):
        value = value[_FRAME_BYTES:]
    try:
        found: Any = json.loads(value)
    except (ValueError, RecursionError):
        return None
    for step in path:
        if isinstance(found, dict):
            found = found.get(str(step))
        elif isinstance(found, list) and isinstance(step, int) and -len(found) <= step < len(found):
            found = found[step]
        else:
            return None
    if isinstance(found, str):
        return found.encode("utf-8", "surrogatepass")
    if found is None or isinstance(found, dict | list):
        return None
    return json.dumps(found).encode()


def flat_headers(headers: pa.Array) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Of all headers of a piece: the row, the name, the content."""
    flat = headers.flatten()
    parents = pc.list_parent_indices(headers)
    return parents, flat.field("key"), flat.field("value")


def _is_last(parents: pa.Array) -> pa.Array:
    """Parents ascend: which of them are not followed by the same."""
    if len(parents) == 0:
        return pa.array([], pa.bool_())
    following = pa.concat_arrays([parents.slice(1), pa.array([-1], parents.type)])
    return pc.not_equal(parents, following)


def _is_number(text: bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _rows_of(is_found: pa.Array) -> pa.Array:
    return pc.indices_nonzero(pc.fill_null(is_found, False)).cast(pa.int64())
