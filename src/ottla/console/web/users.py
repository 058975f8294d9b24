"""The file of users:

[users.anna]
password = "scrypt:..."     # from `ottla registry password`; a plain one works too
role = "editor"             # viewer, editor or admin
unmask = false              # may see fields that are masked
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ottla.common.errors import OttlaError
from ottla.common.users_file import check_section, read_sections
from ottla.console.web.rights import ROLES, VIEWER

_FIELDS = {"password", "role", "unmask"}


@dataclass(frozen=True)
class User:
    name: str
    password: str
    role: str = VIEWER
    may_unmask: bool = False


def load_users(path: str) -> dict[str, User]:
    """Raises OttlaError, which says what is wrong with the file."""
    sections = read_sections(path, needs="a password and a role")
    return {name: _user(path, name, section) for name, section in sections.items()}


def _user(path: str, name: str, table: Any) -> User:
    if not isinstance(table, dict) or not isinstance(table.get("password"), str) or not table["password"]:
        raise OttlaError(f"{path}: [users.{name}] needs a password.")
    check_section(path, name, table, _FIELDS)
    role = table.get("role", VIEWER)
    if role not in ROLES:
        raise OttlaError(f"{path}: role of [users.{name}] is one of {', '.join(ROLES)}.")
    unmask = table.get("unmask", False)
    if not isinstance(unmask, bool):
        raise OttlaError(f"{path}: unmask of [users.{name}] is true or false.")
    return User(name, table["password"], role, unmask)
