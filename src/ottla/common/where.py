"""The language of `--where`, and of the console's filter: conditions on a record, parsed by hand and never evaluated as
code.

    value.amount > 100 and headers.region == "eu"
    key =~ "^user-" && not (value.tags contains "test")
    timestamp >= @-1h or partition in [0, 1]
    exists(value.error) or len(value) > 1000

Fields: key, value, headers, topic, partition, offset, timestamp. `key` and `value` alone are text; with a path
(`value.user.id`, `value.items[0]`, `value["odd name"]`) the bytes are read as JSON. What is not there is null. A number
compares with text that is a number (headers are text); other kinds that differ are unequal and have no order.

    or   := and  (("or" | "||") and)*
    and  := not  (("and" | "&&") not)*
    not  := ("not" | "!") not | test
    test := operand [("==" | "!=" | "<" | "<=" | ">" | ">=" | "=~" | "!~" | "in" | "contains") operand]
    operand := literal | list | field path | ("len" | "lower" | "exists") "(" or ")" | "(" or ")"

Parsing gives nested closures, so a record costs a few calls and no tree walk.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ottla.common.errors import OttlaError
from ottla.common.linear_regex import compile_pattern
from ottla.common.moments import parse_time

DEPTH_MAX = 50  # nested parentheses and nots; keeps Python's own stack out of it

TOKEN = re.compile(
    r"""\s*(?:
      (?P<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)
    | (?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    | (?P<time>@[^\s()\[\],]+)
    | (?P<symbol>==|!=|<=|>=|=~|!~|&&|\|\||[<>!()\[\],.])
    | (?P<name>[A-Za-z_][A-Za-z0-9_-]*)
    )""",
    re.VERBOSE | re.ASCII,
)
FIELDS = ("key", "value", "headers", "topic", "partition", "offset", "timestamp")
CONSTANTS: dict[str, Any] = {"true": True, "false": False, "null": None}
ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
COMPARISONS = frozenset({*ORDER, "==", "!=", "=~", "!~", "in", "contains"})


@dataclass
class Record:
    """What a condition may look at. JSON is read at most once, and only when a path asks for it."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] = ()
    _json: dict[str, Any] = field(default_factory=dict)

    def text(self, name: str) -> str | None:
        raw: bytes | None = getattr(self, name)
        return None if raw is None else raw.decode("utf-8", "replace")

    def json(self, name: str) -> Any:
        if name not in self._json:
            try:
                self._json[name] = json.loads(getattr(self, name) or b"null")
            except (ValueError, RecursionError):
                self._json[name] = None
        return self._json[name]

    def header(self, name: str) -> str | None:
        for present, value in reversed(self.headers):
            if present == name:
                return None if value is None else value.decode("utf-8", "replace")
        return None


Value = Callable[[Record], Any]
# Text of a regular expression -> whether a text has a match. Raises ValueError.
Search = Callable[[str], Callable[[str], bool]]


class WhereError(OttlaError):
    """A mistake in a condition; the sentence points at the place."""


def backtracking(source: str) -> Callable[[str], bool]:
    """Python's own expressions: all that people know, but some take for ever."""
    pattern = re.compile(source)
    return lambda text: pattern.search(text) is not None


def linear(source: str) -> Callable[[str], bool]:
    """RE2's: for conditions of others, as none takes more than linear time."""
    pattern = compile_pattern(source)
    return lambda text: pattern.search(text.encode()) is not None


class Token(NamedTuple):
    kind: str
    text: str
    at: int


class Need(NamedTuple):
    """Bytes that a record's key or value has if a condition holds for it: what has them not need not be looked at.

    In JSON a text may be written otherwise: with escapes (a backslash is in it), or not in UTF-8 (a zero byte is)."""

    column: str
    literal: bytes
    is_json: bool


class Condition(NamedTuple):
    holds: Callable[[Record], bool]
    needs: tuple[Need, ...]


def compile_where(text: str, search: Search = backtracking) -> Callable[[Record], bool]:
    """The condition as a function. Raises WhereError."""
    return compile_condition(text, search).holds


def compile_condition(text: str, search: Search = backtracking) -> Condition:
    """With what it takes at least, for those who can look for bytes in many records at once."""
    parser = _Parser(text, search)
    condition = parser.either()
    if parser.next is not None:
        raise parser.wrong("expected 'and', 'or' or the end")
    return Condition(lambda record: _truth(condition(record)), parser.needs_of(condition))


class _Parser:
    def __init__(self, text: str, search: Search) -> None:
        self._text = text
        self._search = search
        self._tokens = self._split(text)
        self._at = 0
        self._depth = 0
        # By closure: what it names, what it is, what it takes at least.
        self._paths: dict[Value, tuple[str, list[str | int]]] = {}
        self._constants: dict[Value, Any] = {}
        self._needs: dict[Value, tuple[Need, ...]] = {}

    def needs_of(self, condition: Value) -> tuple[Need, ...]:
        """A field by itself is a condition: that there is something."""
        return self._needs.get(condition, self._named_steps(condition))

    def _named_steps(self, operand: Value) -> tuple[Need, ...]:
        column, path = self._paths.get(operand, ("", []))
        if column not in ("key", "value"):
            return ()
        return tuple(Need(column, step.encode(), True) for step in path if isinstance(step, str) and _is_plain(step))

    def _needs_of_test(self, symbol: str, left: Value, right: Value) -> tuple[Need, ...]:
        """Of comparisons that nothing but a value can pass: null is unequal, and has no order."""
        if symbol == "contains" or symbol in ORDER or (symbol == "==" and self._constants.get(right) is not None):
            found = self._named_steps(left)
        else:
            return ()
        literal = self._constants.get(right)
        column, path = self._paths.get(left, ("", []))
        if symbol in ORDER or column not in ("key", "value") or not isinstance(literal, str) or not _is_plain(literal):
            return found
        if path and (symbol == "contains" or _number(literal) is not None):
            return found  # an element of a list may be a number, which equals its text
        return (*found, Need(column, literal.encode(), bool(path)))

    def _split(self, text: str) -> list[Token]:
        tokens, at, end = [], 0, len(text.rstrip())
        while at < end:
            match = TOKEN.match(text, at)
            if match is None:
                raise WhereError(f"the condition cannot read '{text[at:].strip()[:20]}' at column {at + 1}.")
            assert match.lastgroup is not None
            tokens.append(Token(match.lastgroup, match[match.lastgroup], match.start(match.lastgroup)))
            at = match.end()
        return tokens

    # -- the token stream ------------------------------------------------------------------------------------------

    @property
    def next(self) -> Token | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def _take(self, *texts: str) -> str | None:
        """The next token's text if it is one of these words or symbols."""
        token = self.next
        if token is not None and token.kind in ("symbol", "name") and token.text in texts:
            self._at += 1
            return token.text
        return None

    def _require(self, text: str) -> None:
        if self._take(text) is None:
            raise self.wrong(f"expected '{text}'")

    def wrong(self, what: str) -> WhereError:
        token = self.next
        place = f"before '{token.text}' (column {token.at + 1})" if token else "at the end"
        return WhereError(f"{what} {place} in: {self._text}")

    # -- the grammar, loosest binding first ------------------------------------------------------------------------

    def either(self) -> Value:
        terms = [self._both()]
        while self._take("or", "||"):
            terms.append(self._both())
        return terms[0] if len(terms) == 1 else lambda record: any(_truth(term(record)) for term in terms)

    def _both(self) -> Value:
        terms = [self._negation()]
        while self._take("and", "&&"):
            terms.append(self._negation())
        if len(terms) == 1:
            return terms[0]

        def both(record: Record) -> bool:
            return all(_truth(term(record)) for term in terms)

        self._needs[both] = tuple(need for term in terms for need in self.needs_of(term))
        return both

    def _negation(self) -> Value:
        if self._take("not", "!") is None:
            return self._test()
        self._deeper()
        inner = self._negation()
        self._depth -= 1
        negation = lambda record: not _truth(inner(record))  # noqa: E731
        self._needs[negation] = ()
        return negation

    def _test(self) -> Value:
        left = self._operand()
        symbol = self._take(*COMPARISONS)
        if symbol is None:
            return left
        if symbol in ("=~", "!~"):
            return self._matching(left, symbol == "=~")
        right = self._operand()
        test = _comparison(symbol, left, right)
        self._needs[test] = self._needs_of_test(symbol, left, right)
        return test

    def _matching(self, left: Value, wanted: bool) -> Value:
        token = self.next
        if token is None or token.kind != "string":
            raise self.wrong("expected a regular expression in quotes")
        self._at += 1
        source = _unquote(token.text, regex=True)
        try:
            has_match = self._search(source)
        except (re.error, ValueError) as error:
            raise WhereError(f"'{source}' is not a regular expression: {error}.") from None
        return lambda record: has_match(_as_text(left(record))) is wanted

    def _operand(self) -> Value:
        token = self.next
        if token is None:
            raise self.wrong("expected a field or a value")
        if self._take("("):
            return self._closing(")")
        if self._take("["):
            return self._list()
        if token.kind == "symbol":
            raise self.wrong("expected a field or a value")
        self._at += 1
        if token.kind == "name":
            return self._named(token.text)
        constant = self._literal(token)
        operand = lambda record: constant  # noqa: E731
        self._constants[operand] = constant
        return operand

    def _closing(self, symbol: str) -> Value:
        self._deeper()
        inner = self.either()
        self._require(symbol)
        self._depth -= 1
        return inner

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise WhereError(f"the condition is nested deeper than {DEPTH_MAX} levels.")

    def _list(self) -> Value:
        self._deeper()
        items: list[Value] = []
        while self._take("]") is None:
            if items:
                self._require(",")
            items.append(self._operand())
        self._depth -= 1
        return lambda record: [item(record) for item in items]

    def _literal(self, token: Token) -> Any:
        if token.kind == "number":
            try:
                return float(token.text) if re.search(r"[.eE]", token.text) else int(token.text)
            except ValueError:  # Python reads no integers of thousands of digits
                raise WhereError(f"the number {token.text[:20]}... is too long.") from None
        if token.kind == "string":
            return _unquote(token.text)
        at_ms = parse_time(token.text[1:])
        if at_ms is None:
            raise WhereError(f"'{token.text}' is not a time: write @-15m or @2026-01-31T12:00.")
        return at_ms

    def _named(self, name: str) -> Value:
        if name in CONSTANTS:
            return lambda record: CONSTANTS[name]
        if name in FUNCTIONS:
            self._require("(")
            inner, function = self._closing(")"), FUNCTIONS[name]
            called = lambda record: function(inner(record))  # noqa: E731
            # Of what is not there, `exists` is false and the others are null.
            self._needs[called] = self._named_steps(inner)
            return called
        if name not in FIELDS:
            raise WhereError(
                f"a condition knows no field '{name}': use {', '.join(FIELDS)}; JSON fields are value.{name}."
            )
        path = self._path()
        operand = _field(name, path)
        self._paths[operand] = name, path
        return operand

    def _path(self) -> list[str | int]:
        steps: list[str | int] = []
        while symbol := self._take(".", "["):
            token = self.next
            if token is None or token.kind not in (("name",) if symbol == "." else ("number", "string")):
                raise self.wrong("expected a name" if symbol == "." else "expected an index or a quoted name")
            self._at += 1
            steps.append(token.text if token.kind == "name" else self._literal(token))
            if symbol == "[":
                self._require("]")
        return steps


# -- what the parts mean -------------------------------------------------------------------------------------------


def _is_plain(text: str) -> bool:
    """Whether its bytes are in a text that has it: bytes that are no UTF-8 are read as U+FFFD."""
    return bool(text) and "\ufffd" not in text and text.isprintable()


def _field(name: str, path: list[str | int]) -> Value:
    if name == "headers":
        if len(path) != 1 or not isinstance(path[0], str):
            raise WhereError('name one header, as in headers.trace or headers["trace-id"].')
        header = path[0]
        return lambda record: record.header(header)
    if name in ("key", "value"):
        return (lambda record: _walk(record.json(name), path)) if path else (lambda record: record.text(name))
    if path:
        raise WhereError(f"{name} has no fields of its own.")
    return operator.attrgetter(name)


def _walk(value: Any, path: list[str | int]) -> Any:
    for step in path:
        if isinstance(value, dict):
            value = value.get(step if isinstance(step, str) else str(step))
        elif isinstance(value, list) and isinstance(step, int) and -len(value) <= step < len(value):
            value = value[step]
        else:
            return None
    return value


def _comparison(symbol: str, left: Value, right: Value) -> Value:
    if symbol == "in":
        return lambda record: _holds(right(record), left(record))
    if symbol == "contains":
        return lambda record: _holds(left(record), right(record))
    if symbol in ORDER:
        compare = ORDER[symbol]
        return lambda record: _ordered(left(record), right(record), compare)
    if symbol == "==":
        return lambda record: _equal(left(record), right(record))
    return lambda record: not _equal(left(record), right(record))


def _alike(a: Any, b: Any) -> tuple[Any, Any]:
    """Text that meets a number is read as a number where it is one."""
    if _is_number(a) and isinstance(b, str):
        return a, _number(b)
    if _is_number(b) and isinstance(a, str):
        return _number(a), b
    return a, b


def _equal(a: Any, b: Any) -> bool:
    a, b = _alike(a, b)
    return isinstance(a, bool) == isinstance(b, bool) and bool(a == b)


def _ordered(a: Any, b: Any, compare: Callable[[Any, Any], bool]) -> bool:
    a, b = _alike(a, b)
    comparable = (_is_number(a) and _is_number(b)) or (isinstance(a, str) and isinstance(b, str))
    return comparable and compare(a, b)


def _holds(container: Any, item: Any) -> bool:
    if isinstance(container, str):
        return isinstance(item, str | int | float) and _as_text(item) in container
    if isinstance(container, dict):
        return isinstance(item, str) and item in container
    return isinstance(container, list) and any(_equal(element, item) for element in container)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number(text: str) -> float | int | None:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return None


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _truth(value: Any) -> bool:
    return value is not None and value is not False


def _length(value: Any) -> int | None:
    return len(value) if isinstance(value, str | list | dict) else None


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "len": _length,
    "lower": lambda value: value.lower() if isinstance(value, str) else value,
    "exists": lambda value: value is not None,
}


def _unquote(token: str, *, regex: bool = False) -> str:
    """The text between the quotes; `\\"`, `\\'`, `\\\\`, `\\n`, `\\t`; a regular expression keeps its backslashes."""
    body = token[1:-1]
    if regex:
        return body.replace("\\" + token[0], token[0])
    escapes = {"n": "\n", "t": "\t", "r": "\r"}
    return re.sub(r"\\(.)", lambda match: escapes.get(match[1], match[1]), body)
