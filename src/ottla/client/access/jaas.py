"""User and password out of `sasl.jaas.config`, which is a line of Java's login configuration:

    org.apache.kafka.common.security.scram.ScramLoginModule required username="ada" password="quote \\" me";

Read as Kafka reads it: words, texts in double or single quotes with backslashes, comments. What is wrong with it is
told without quoting it, since there is a password in it.
"""

from __future__ import annotations

import re

from ottla.common.errors import OttlaError

_SHAPE = 'it has the form `...LoginModule required username="..." password="...";`'
_TOKEN = re.compile(
    r"""
      (?P<blank> \s+ | //[^\n]* | /\*.*?\*/ )
    | "(?P<double> (?:[^"\\\n]|\\.)* )"
    | '(?P<single> (?:[^'\\\n]|\\.)* )'
    | (?P<word> [\w.$+-]+ )
    | (?P<sign> [=;] )
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\([0-3]?[0-7]{1,2}|.)", re.DOTALL)
_ESCAPED = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def parse_jaas(text: str) -> tuple[str, dict[str, str]]:
    """The name of the login module, without its package, and its options. Raises OttlaError."""
    tokens = _tokens(text)
    if len(tokens) < 3 or tokens[-1] != ("sign", ";"):
        raise OttlaError(f"sasl.jaas.config does not end with a semicolon: {_SHAPE}.")
    if ("sign", ";") in tokens[:-1]:
        raise OttlaError("sasl.jaas.config has more than one login module: give the one of this client.")
    (kind, module), (_, flag), *options = tokens[:-1]
    if kind != "word" or flag.lower() not in ("required", "requisite", "sufficient", "optional"):
        raise OttlaError(f"sasl.jaas.config does not begin with a login module and `required`: {_SHAPE}.")
    if len(options) % 3:
        raise OttlaError(f"sasl.jaas.config has an option without a value: {_SHAPE}.")
    found: dict[str, str] = {}
    for name, equals, value in zip(options[::3], options[1::3], options[2::3], strict=True):
        if name[0] != "word" or equals != ("sign", "=") or value[0] == "sign":
            raise OttlaError(f"sasl.jaas.config has an option without a value: {_SHAPE}.")
        found[name[1]] = value[1]
    # Packaged by others, as in kafkashaded.org.apache..., it is the same module.
    return module.rpartition(".")[2], found


def _tokens(text: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise OttlaError(f"sasl.jaas.config cannot be read at character {at + 1}: {_SHAPE}.")
        at = match.end()
        kind = match.lastgroup or ""
        if kind in ("double", "single"):
            found.append(("text", _ESCAPE.sub(_unescaped, match[kind])))
        elif kind != "blank":
            found.append((kind, match[kind]))
    return found


def _unescaped(match: re.Match[str]) -> str:
    code = match[1]
    return chr(int(code, 8)) if code[0] in "01234567" else _ESCAPED.get(code, code)
