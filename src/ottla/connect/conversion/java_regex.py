"""Java's regular expressions for topic names, by Python's `re`: translated where both mean the same, refused elsewhere.

Both prefer the first alternative that matches (as RE2 does), so a pattern that both take finds the same groups. What
is written otherwise (`(?<name>...)`, `\\Q...\\E`, `\\p{Alpha}`, `\\z`) is rewritten; classes of classes
(`[a-z&&[^b]]`), flags in the middle and what Python has no word for are refused with a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

_POSIX = {
    "Lower": "a-z", "Upper": "A-Z", "ASCII": "\\x00-\\x7f", "Alpha": "a-zA-Z", "Digit": "0-9", "Alnum": "a-zA-Z0-9",
    "Punct": "!-/:-@\\[-`{-~", "Graph": "!-~", "Print": " -~", "Blank": " \\t", "Cntrl": "\\x00-\\x1f\\x7f",
    "XDigit": "0-9a-fA-F", "Space": " \\t\\n\\x0b\\f\\r",
}  # fmt: skip
_POSIX |= {"IsAlphabetic": _POSIX["Alpha"], "L": _POSIX["Alpha"], "Lu": "A-Z", "Ll": "a-z", "N": "0-9", "Nd": "0-9"}
_SAME = frozenset("dDwWsSbBtnrfAu0123456789") - {"0"}
_OTHERS = {"z": "\\Z", "Z": "(?=\\n?\\Z)", "e": "\\x1b", "a": "\\x07", "h": "[ \\t\\xa0]", "R": "(?:\\r\\n|[\\n-\\r])"}
_GROUPS = ("(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>")


class NotTranslated(ValueError):
    """What is wrong with the pattern, or with which part of it."""


@lru_cache(maxsize=256)
def compile_java(pattern: str) -> re.Pattern[str]:
    """Raises NotTranslated."""
    try:
        return re.compile(_Translation(pattern).done(), re.ASCII)
    except re.error as error:
        raise NotTranslated(f"Invalid regex: {error}") from None


class _Translation:
    def __init__(self, pattern: str) -> None:
        self._text = pattern
        self._at = 0

    def done(self) -> str:
        out = []
        while self._at < len(self._text):
            if self._sees("\\"):
                out.append(self._escape(in_class=False))
            elif self._sees("["):
                out.append(self._class())
            elif self._sees("(?"):
                out.append(self._group())
            elif self._sees("$"):
                # Java's `$` is before a last line break too; there is none in the name of a topic.
                self._at += 1
                out.append("$")
            else:
                out.append(self._text[self._at])
                self._at += 1
        return "".join(out)

    def _sees(self, word: str) -> bool:
        return self._text.startswith(word, self._at)

    def _escape(self, *, in_class: bool) -> str:
        self._at += 1
        if self._at >= len(self._text):
            raise NotTranslated("Invalid regex: it ends with a backslash")
        letter = self._text[self._at]
        self._at += 1
        if letter == "Q":
            end = self._text.find("\\E", self._at)
            quoted = self._text[self._at : end if end >= 0 else len(self._text)]
            self._at = end + 2 if end >= 0 else len(self._text)
            return re.escape(quoted)
        if letter in "pP":
            return self._property(negated=letter == "P", in_class=in_class)
        if letter == "k":
            found = re.compile(r"<([a-zA-Z][a-zA-Z0-9]*)>").match(self._text, self._at)
            if found is None or in_class:
                raise NotTranslated("Invalid regex: \\k needs the name of a group")
            self._at = found.end()
            return f"(?P={found.group(1)})"
        if letter == "x":
            found = re.compile(r"\{([0-9a-fA-F]+)\}|([0-9a-fA-F]{2})").match(self._text, self._at)
            if found is None:
                raise NotTranslated("Invalid regex: \\x needs two hexadecimal digits")
            self._at = found.end()
            return re.escape(chr(int(found.group(1) or found.group(2), 16)))
        if letter in _SAME:
            return f"\\{letter}"
        if letter in _OTHERS and not in_class:
            return _OTHERS[letter]
        if letter.isascii() and letter.isalnum():
            raise NotTranslated(f"the escape \\{letter} of Java's regular expressions is not known here")
        return re.escape(letter)

    def _property(self, *, negated: bool, in_class: bool) -> str:
        found = re.compile(r"\{([A-Za-z]+)\}|([A-Z])").match(self._text, self._at)
        if found is None:
            raise NotTranslated("Invalid regex: \\p needs a name in braces")
        self._at = found.end()
        name = (found.group(1) or found.group(2)).removeprefix("Is") if found else ""
        chars = _POSIX.get(found.group(1) or found.group(2)) or _POSIX.get(name)
        if chars is None or (negated and in_class):
            raise NotTranslated(f"the class \\p{{{name}}} of Java's regular expressions is not known here")
        return chars if in_class else f"[{'^' if negated else ''}{chars}]"

    def _class(self) -> str:
        self._at += 1
        out = ["["]
        if self._sees("^"):
            out.append("^")
            self._at += 1
        first = True
        while True:
            if self._at >= len(self._text):
                raise NotTranslated("Invalid regex: a class has no closing bracket")
            letter = self._text[self._at]
            if letter == "]" and not first:
                self._at += 1
                return "".join([*out, "]"])
            first = False
            if letter == "\\":
                out.append(self._escape(in_class=True))
                continue
            if letter == "[" or self._sees("&&"):
                raise NotTranslated("classes within classes ([a-z&&[^b]]) are not known here: write the class out")
            out.append("\\" + letter if letter in "|~&]" else letter)
            self._at += 1

    def _group(self) -> str:
        for word in _GROUPS:
            if self._sees(word):
                self._at += len(word)
                return word
        if (found := re.compile(r"\(\?<([a-zA-Z][a-zA-Z0-9]*)>").match(self._text, self._at)) is not None:
            self._at = found.end()
            return f"(?P<{found.group(1)}>"
        if (found := re.compile(r"\(\?([imsx]+)\)").match(self._text, self._at)) is not None:
            if self._at != 0:
                raise NotTranslated(f"flags in the middle of a pattern, as {found.group(0)}, are not known here")
            self._at = found.end()
            return found.group(0)
        if (found := re.compile(r"\(\?([ims]*(?:-[ims]+)?):").match(self._text, self._at)) is not None:
            self._at = found.end()
            return found.group(0)
        raise NotTranslated(f"'{self._text[self._at : self._at + 5]}' of Java's expressions is not known here")


@dataclass(frozen=True)
class Found:
    """What is before and behind a match, its groups (the match as a whole is the first), and the names of groups."""

    before: str
    after: str
    groups: tuple[str | None, ...]
    names: Mapping[str, int]


def replaced_first(found: Found, replacement: str) -> str:
    """As `Matcher.replaceFirst`, which knows `$1`, `${name}` and backslashes. Raises NotTranslated."""
    out: list[str] = [found.before]
    at = 0
    while at < len(replacement):
        letter = replacement[at]
        if letter == "\\":
            if at + 1 >= len(replacement):
                raise NotTranslated("the replacement ends with a backslash")
            out.append(replacement[at + 1])
            at += 2
        elif letter == "$":
            text, at = _reference(found, replacement, at + 1)
            out.append(text)
        else:
            out.append(letter)
            at += 1
    return "".join([*out, found.after])


def _reference(found: Found, replacement: str, at: int) -> tuple[str, int]:
    if (name := re.compile(r"\{([a-zA-Z][a-zA-Z0-9]*)\}").match(replacement, at)) is not None:
        if name.group(1) not in found.names:
            raise NotTranslated(f"the pattern has no group called '{name.group(1)}'")
        return found.groups[found.names[name.group(1)]] or "", name.end()
    if at >= len(replacement) or replacement[at] not in "0123456789":
        raise NotTranslated("a $ in the replacement is not followed by the number or name of a group")
    number = int(replacement[at])
    at += 1
    if number >= len(found.groups):
        raise NotTranslated(f"the pattern has no group {number}")
    # As many digits as still name a group.
    while at < len(replacement) and replacement[at] in "0123456789":
        longer = number * 10 + int(replacement[at])
        if longer >= len(found.groups):
            break
        number, at = longer, at + 1
    return found.groups[number] or "", at
