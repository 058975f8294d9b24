"""The file of users:

[users.anna]
password = "scrypt:..."     # from `ottla registry password`; a plain one works too
role = "editor"             # viewer, editor or admin
unmask = false              # may see fields that are masked
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ottla.common.errors import OttlaError
from ottla.common.passwords import is_broken_hash
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
    try:
        tables = tomllib.loads(Path(path).read_text()).get("users", {})
    except OSError as error:
        raise OttlaError(f"cannot read {path}: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise OttlaError(f"{path} is not valid TOML: {error}.") from None
    if not isinstance(tables, dict) or not tables:
        raise OttlaError(f"{path} names no user: write a section [users.NAME] with a password and a role.")
    return {name: _user(path, name, table) for name, table in tables.items()}


def _user(path: str, name: str, table: Any) -> User:
    if not isinstance(table, dict) or not isinstance(table.get("password"), str) or not table["password"]:
        raise OttlaError(f"{path}: [users.{name}] needs a password.")
    if is_broken_hash(table["password"]):
        raise OttlaError(f"{path}: the password of [users.{name}] is no hash of `ottla registry password`.")
    if unknown := table.keys() - _FIELDS:
        raise OttlaError(f"{path}: [users.{name}] has '{min(unknown)}'; known are {', '.join(sorted(_FIELDS))}.")
    role = table.get("role", VIEWER)
    if role not in ROLES:
        raise OttlaError(f"{path}: role of [users.{name}] is one of {', '.join(ROLES)}.")
    unmask = table.get("unmask", False)
    if not isinstance(unmask, bool):
        raise OttlaError(f"{path}: unmask of [users.{name}] is true or false.")
    return User(name, table["password"], role, unmask)
