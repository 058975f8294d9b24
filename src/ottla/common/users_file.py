"""Files of users, in TOML: a section `[users.NAME]` for each, with what a service wants to know of them."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from ottla.common.errors import OttlaError
from ottla.common.passwords import is_broken_hash


def read_file(path: str) -> dict[str, Any]:
    """Raises OttlaError."""
    try:
        return tomllib.loads(Path(path).read_text())
    except OSError as error:
        raise OttlaError(f"cannot read {path}: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise OttlaError(f"{path} is not valid TOML: {error}.") from None


def sections_of(path: str, content: dict[str, Any], *, needs: str) -> dict[str, Any]:
    """By the user's name. Raises OttlaError; `needs` is what a section has to have."""
    sections = content.get("users", {})
    if not isinstance(sections, dict) or not sections:
        raise OttlaError(f"{path} names no user: write a section [users.NAME] with {needs}.")
    return sections


def read_sections(path: str, *, needs: str) -> dict[str, Any]:
    return sections_of(path, read_file(path), needs=needs)


def check_section(path: str, name: str, section: dict[str, Any], fields: set[str]) -> None:
    """What holds for every service. Raises OttlaError."""
    password = section.get("password")
    if isinstance(password, str) and is_broken_hash(password):
        raise OttlaError(f"{path}: the password of [users.{name}] is no hash of `ottla registry password`.")
    if unknown := section.keys() - fields:
        raise OttlaError(f"{path}: [users.{name}] has '{min(unknown)}'; known are {', '.join(sorted(fields))}.")


def read_passwords(path: str) -> dict[str, str]:
    """Of a service for which a user has nothing else. Raises OttlaError."""
    found = {}
    for name, section in read_sections(path, needs="a password").items():
        password = section.get("password") if isinstance(section, dict) else None
        if not isinstance(password, str) or not password or ":" in name:
            raise OttlaError(f"{path}: [users.{name}] needs a password, and a name without a colon.")
        check_section(path, name, section, {"password"})
        found[name] = password
    return found
