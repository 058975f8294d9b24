"""Names of subjects, and the contexts that they may begin with: `:.context:subject`.

Each context has ids of its own. A subject without one is in the default context, whose name is a dot.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.registry.errors import invalid_subject

DEFAULT_CONTEXT = "."
_RESERVED = ("__GLOBAL", "__EMPTY")
ANY_CONTEXT = ":*:"


class Subject(NamedTuple):
    context: str
    name: str

    @property
    def qualified(self) -> str:
        return self.name if self.context == DEFAULT_CONTEXT else f":{self.context}:{self.name}"


def parse_subject(text: str) -> Subject:
    if text.startswith(":.") and (end := text.find(":", 2)) > 0:
        return Subject(text[1:end], text[end + 1 :])
    return Subject(DEFAULT_CONTEXT, text)


def valid_subject(text: str, *, may_be_context: bool = False) -> str:
    """The subject in its one spelling. `may_be_context`: settings belong to whole contexts too."""
    subject = parse_subject(text)
    # What was no UTF-8 has become U+FFFD: different names would be one.
    is_odd = any(character < " " or character in "\x7f\ufffd" for character in text) or text.startswith(ANY_CONTEXT)
    is_empty = not subject.name and not may_be_context
    if not text or is_odd or subject.name in _RESERVED or is_empty:
        raise invalid_subject(text)
    return subject.qualified


def in_context(context: str, subject: str) -> str:
    """A subject of a path below `/contexts/NAME`; one that names its own context keeps it."""
    if context == DEFAULT_CONTEXT or subject.startswith((":.", ANY_CONTEXT)):
        return subject
    return f":{context}:{subject}"


def meant_in(context: str, subject: str) -> str:
    """What a reference or an alias means in this context: unless it names one, a subject of the same."""
    named = parse_subject(subject)
    return Subject(context, named.name).qualified if named.context == DEFAULT_CONTEXT else named.qualified


def has_prefix(subject: str, prefix: str) -> bool:
    """Whether a list that is asked for with this prefix has the subject: a prefix without context is one of the
    default context, and `:*:` stands for any."""
    its = parse_subject(subject)
    if prefix.startswith(ANY_CONTEXT):
        return its.name.startswith(prefix.removeprefix(ANY_CONTEXT))
    wanted = parse_subject(prefix)
    return its.context == wanted.context and its.name.startswith(wanted.name)


def context_prefix(context: str) -> str:
    return "" if context == DEFAULT_CONTEXT else f":{context}:"


def context_name(text: str) -> str:
    """As paths and queries have it: `.name`, `name`, `:.name:`."""
    stripped = text.strip(":")
    if ":" in stripped:
        raise invalid_subject(text)
    return stripped if stripped.startswith(".") else f".{stripped}"
