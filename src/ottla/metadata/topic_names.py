"""Kafka's rules for topic names."""

from __future__ import annotations

import re

NAME_LENGTH_MAX = 249
_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def name_fault(name: str) -> str | None:
    """Why this cannot be a topic's name, or None when it can."""
    if not name:
        return "Topic name is invalid: the empty string is not allowed"
    if name in (".", ".."):
        return f"Topic name is invalid: '{name}' is not allowed"
    if len(name) > NAME_LENGTH_MAX:
        return f"Topic name is invalid: the length of '{name}' is longer than the max allowed length {NAME_LENGTH_MAX}"
    if not _LEGAL.fullmatch(name):
        return (
            f"Topic name is invalid: '{name}' contains one or more characters other than "
            "ASCII alphanumerics, '.', '_' and '-'"
        )
    return None


def collision_key(name: str) -> str:
    """Names with equal keys would share a metric's name, in which Kafka writes '.' as '_'."""
    return name.replace(".", "_")
