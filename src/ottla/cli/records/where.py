"""The language of `--where`: conditions on a record, parsed by hand and never evaluated as code.

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

import click

from ottla.cli.records.positions import parse_time

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


class Token(NamedTuple):
    kind: str
    text: str
    at: int


def compile_where(text: str) -> Callable[[Record], bool]:
    """The condition as a function; a mistake is a usage error that points at the place."""
    parser = _Parser(text)
    condition = parser.either()
    if parser.next is not None:
        raise parser.wrong("expected 'and', 'or' or the end")
    return lambda record: _truth(condition(record))


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = self._split(text)
        self._at = 0
        self._depth = 0

    def _split(self, text: str) -> list[Token]:
        tokens, at, end = [], 0, len(text.rstrip())
        while at < end:
            match = TOKEN.match(text, at)
            if match is None:
                raise click.UsageError(f"--where cannot read '{text[at:].strip()[:20]}' at column {at + 1}.")
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

    def wrong(self, what: str) -> click.UsageError:
        token = self.next
        place = f"before '{token.text}' (column {token.at + 1})" if token else "at the end"
        return click.UsageError(f"--where: {what} {place} in: {self._text}")

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
        return terms[0] if len(terms) == 1 else lambda record: all(_truth(term(record)) for term in terms)

    def _negation(self) -> Value:
        if self._take("not", "!") is None:
            return self._test()
        self._deeper()
        inner = self._negation()
        self._depth -= 1
        return lambda record: not _truth(inner(record))

    def _test(self) -> Value:
        left = self._operand()
        symbol = self._take(*COMPARISONS)
        if symbol is None:
            return left
        if symbol in ("=~", "!~"):
            return self._matching(left, symbol == "=~")
        return _comparison(symbol, left, self._operand())

    def _matching(self, left: Value, wanted: bool) -> Value:
        token = self.next
        if token is None or token.kind != "string":
            raise self.wrong("expected a regular expression in quotes")
        self._at += 1
        source = _unquote(token.text, regex=True)
        try:
            pattern = re.compile(source)
        except re.error as error:
            raise click.UsageError(f"--where: '{source}' is not a regular expression: {error}.") from None
        return lambda record: (pattern.search(_as_text(left(record))) is not None) is wanted

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
        return lambda record: constant

    def _closing(self, symbol: str) -> Value:
        self._deeper()
        inner = self.either()
        self._require(symbol)
        self._depth -= 1
        return inner

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise click.UsageError(f"--where is nested deeper than {DEPTH_MAX} levels.")

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
            return float(token.text) if re.search(r"[.eE]", token.text) else int(token.text)
        if token.kind == "string":
            return _unquote(token.text)
        at_ms = parse_time(token.text[1:])
        if at_ms is None:
            raise click.UsageError(f"--where: '{token.text}' is not a time: write @-15m or @2026-01-31T12:00.")
        return at_ms

    def _named(self, name: str) -> Value:
        if name in CONSTANTS:
            return lambda record: CONSTANTS[name]
        if name in FUNCTIONS:
            self._require("(")
            inner, function = self._closing(")"), FUNCTIONS[name]
            return lambda record: function(inner(record))
        if name not in FIELDS:
            raise click.UsageError(
                f"--where knows no field '{name}': use {', '.join(FIELDS)}; JSON fields are value.{name}."
            )
        return _field(name, self._path())

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


def _field(name: str, path: list[str | int]) -> Value:
    if name == "headers":
        if len(path) != 1 or not isinstance(path[0], str):
            raise click.UsageError('--where: name one header, as in headers.trace or headers["trace-id"].')
        header = path[0]
        return lambda record: record.header(header)
    if name in ("key", "value"):
        return (lambda record: _walk(record.json(name), path)) if path else (lambda record: record.text(name))
    if path:
        raise click.UsageError(f"--where: {name} has no fields of its own.")
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
