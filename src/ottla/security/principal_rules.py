"""`ssl.principal.mapping.rules` (KIP-371): from the name in a certificate to the name of a user.

    RULE:^CN=([^,]+),OU=services.*$/$1/L,DEFAULT

The first rule whose pattern matches the whole name decides; `$1` is what its first group found. DEFAULT is the name
as it is. A name that no rule matches is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from ottla.common.errors import OttlaError

_RULE = re.compile(r"\s*(?:(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?))\s*(?:,|$)", re.DOTALL)
_GROUP = re.compile(r"\\(.)|\$(\d)", re.DOTALL)


class _Rule(NamedTuple):
    # None is DEFAULT.
    pattern: re.Pattern[str] | None
    replacement: str = ""
    letters: str = ""


class NoPrincipal(Exception):
    """No rule is for this name."""


def parse_rules(text: str) -> Callable[[str], str]:
    """What makes a user of a name, or raises NoPrincipal. Raises OttlaError for rules that cannot be read."""
    rules = tuple(_rules(text))

    def user(name: str) -> str:
        for rule in rules:
            if rule.pattern is None:
                return name
            if (match := rule.pattern.fullmatch(name)) is not None:
                found = _GROUP.sub(lambda part, match=match: _filled(part, match), rule.replacement)  # type: ignore[misc]
                return found.lower() if rule.letters == "L" else found.upper() if rule.letters == "U" else found
        raise NoPrincipal(name)

    return user


def _filled(part: re.Match[str], match: re.Match[str]) -> str:
    return part[1] if part[1] is not None else match[int(part[2])] or ""


def _rules(text: str) -> list[_Rule]:
    text = text.strip() or "DEFAULT"
    rules, at = [], 0
    while at < len(text):
        found = _RULE.match(text, at)
        if found is None:
            raise _unreadable(text[at:])
        at = found.end()
        if found[1]:
            rules.append(_Rule(None))
            continue
        try:
            pattern = re.compile(found[2].replace("\\/", "/"))
        except re.error as error:
            raise OttlaError(
                f"ssl.principal.mapping.rules has a pattern that is none ({error}): {found[2]!r}."
            ) from None
        groups = [int(part[2]) for part in _GROUP.finditer(found[3]) if part[2]]
        if any(group > pattern.groups for group in groups):
            raise OttlaError(f"ssl.principal.mapping.rules names a group that the pattern {found[2]!r} does not have.")
        rules.append(_Rule(pattern, found[3], found[4]))
    return rules


def _unreadable(rest: str) -> OttlaError:
    return OttlaError(
        f"ssl.principal.mapping.rules cannot be read at {rest[:60]!r}: rules are RULE:PATTERN/REPLACEMENT/ with an L "
        "or U behind it if need be, and DEFAULT, with commas between them."
    )
