"""Who may do what: users with passwords, and rights on subjects by the beginnings of their names.

    [users.sales]
    password = "scrypt:..."          # from `ottla registry password`; a plain one works too
    read = ["*"]                     # subjects whose schemas may be seen
    write = ["orders-*"]             # subjects where schemas may be registered and deleted
    admin = false                    # may change levels, modes and everything else
    [users.billing]
    certificate = "CN=billing,O=Shop"  # its subject, instead of a password or beside it
    [users.instances]
    certificate = "CN=registry,O=Shop" # of the registry's own instances:
    forwards = true                    # they tell for whom they ask
    [users.reports]
    token = "reports@clients"          # whom a bearer token names; "*": whoever has one and is not named by another
    [oauthbearer]                      # which tokens: see `token_settings.py`

Whoever may write may read. Without a file of users everybody may do everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, unquote

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from ottla.common.basic_logins import BasicLogins
from ottla.common.errors import OttlaError
from ottla.common.turns_by_address import client_of
from ottla.common.users_file import check_section, read_file, sections_of
from ottla.registry.api.answers import answer
from ottla.registry.api.token_settings import TokenSettings, token_settings
from ottla.registry.errors import RegistryError

if TYPE_CHECKING:
    from ottla.registry.api.bearer import BearerTokens

READ, WRITE, ADMIN = "Read", "Write", "Admin"
_LOGINS = ("password", "certificate", "token")
_FIELDS = {*_LOGINS, "forwards", "read", "write", "admin"}
_ANYBODY = "*"
# For whom an instance forwards a request that came with a certificate and without a password.
_FORWARD_USER = b"x-forward-user"


@dataclass(frozen=True)
class User:
    name: str
    # None: it logs in by its certificate or a token only.
    password: str | None
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    is_admin: bool = False
    # The subject of its certificate.
    certificate: str | None = None
    # Whom its bearer tokens name.
    token: str | None = None
    # It asks for others: an instance of the registry.
    forwards: bool = False

    def may(self, right: str, subject: str) -> bool:
        patterns: Sequence[str] = {READ: self.read + self.write, WRITE: self.write}.get(right, ())
        return self.is_admin or any(fnmatchcase(subject, pattern) for pattern in patterns)


class Logins(NamedTuple):
    users: dict[str, User]
    # None: tokens are no logins.
    tokens: TokenSettings | None = None


def load_logins(path: str) -> Logins:
    """Raises OttlaError, which says what is wrong with the file."""
    tree = read_file(path)
    tables = sections_of(path, tree, needs="a password")
    users = {name: _user(path, name, table) for name, table in tables.items()}
    tokens = token_settings(path, tree["oauthbearer"]) if "oauthbearer" in tree else None
    with_token = [user.name for user in users.values() if user.token is not None]
    if with_token and tokens is None:
        raise OttlaError(f"{path}: [users.{with_token[0]}] has a token: say which are good in a section [oauthbearer].")
    if tokens is not None and not with_token:
        raise OttlaError(f'{path} has a section [oauthbearer], and no user has a token: write token = "SUBJECT".')
    return Logins(users, tokens)


def _user(path: str, name: str, table: Any) -> User:
    if not isinstance(table, dict) or not table.keys() & set(_LOGINS) or ":" in name:
        raise OttlaError(
            f"{path}: [users.{name}] needs a password, a certificate or a token, and a name without a colon."
        )
    for word in _LOGINS:
        if not isinstance(table.get(word, ""), str) or table.get(word) == "":
            raise OttlaError(f"{path}: {word} of [users.{name}] is a text.")
    password = table.get("password")
    check_section(path, name, table, _FIELDS)
    lists = {right: table.get(right, []) for right in ("read", "write")}
    for right, patterns in lists.items():
        if not isinstance(patterns, list) or not all(isinstance(pattern, str) for pattern in patterns):
            raise OttlaError(f'{path}: {right} of [users.{name}] is a list of names, as in ["orders-*"].')
    flags = {word: table.get(word, False) for word in ("admin", "forwards")}
    for word, flag in flags.items():
        if not isinstance(flag, bool):
            raise OttlaError(f"{path}: {word} of [users.{name}] is true or false.")
    return User(
        name,
        password,
        tuple(lists["read"]),
        tuple(lists["write"]),
        is_admin=flags["admin"],
        certificate=table.get("certificate"),
        token=table.get("token"),
        forwards=flags["forwards"],
    )


class Authentication:
    """Lets nobody in who is not a user; the application behind it finds the user in the request's state."""

    def __init__(self, app: ASGIApp, users: dict[str, User], tokens: BearerTokens | None) -> None:
        self._app = app
        self._users = users
        self._tokens = tokens
        self._by_token = {user.token: user for user in users.values() if user.token is not None}
        self._asks_for = 'Basic realm="schema registry"' + (", Bearer" if self._tokens is not None else "")
        self._by_certificate = {user.certificate: user for user in users.values() if user.certificate is not None}
        self._logins = BasicLogins({name: user.password for name, user in users.items()})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = dict(scope["headers"])
            login = headers.get(b"authorization")
            user = (
                await self._user(login, client_of(scope))
                if login is not None
                else self._with_certificate(scope, headers)
            )
            if user is None:
                refusal = answer({"error_code": 401, "message": "Unauthorized"}, 401)
                refusal.headers["WWW-Authenticate"] = self._asks_for
                await refusal(scope, receive, send)
                return
            scope.setdefault("state", {})["user"] = user
        await self._app(scope, receive, send)

    def _with_certificate(self, scope: Scope, headers: dict[bytes, bytes]) -> User | None:
        name = scope.get("extensions", {}).get("tls", {}).get("client_cert_name")
        user = self._by_certificate.get(name)
        if user is not None and user.forwards and _FORWARD_USER in headers:
            return self._users.get(unquote(headers[_FORWARD_USER].decode("latin-1")))
        return user

    async def _user(self, header: bytes, address: str) -> User | None:
        scheme, _, encoded = header.partition(b" ")
        if scheme.lower() == b"bearer":
            named = None if self._tokens is None else self._tokens.user(encoded.strip())
            return None if named is None else self._by_token.get(named, self._by_token.get(_ANYBODY))
        name = await self._logins.name(header, address)
        return None if name is None else self._users[name]


def passed_on(request: Request) -> dict[str, str]:
    """Of a request that is forwarded: whose it is, if nothing else in it says so."""
    user: User | None = getattr(request.state, "user", None)
    if user is None or "authorization" in request.headers:
        return {}
    return {_FORWARD_USER.decode(): quote(user.name, safe="")}


def may(request: Request, right: str, subject: str) -> bool:
    user: User | None = getattr(request.state, "user", None)
    return user is None or user.may(right, subject)


def require(request: Request, right: str, subject: str) -> None:
    if not may(request, right, subject):
        raise RegistryError(40301, f"User is denied operation {right} on Subject: {subject}")
