"""Users who log in by SCRAM: how an admin adds, changes and removes them, and the first of them.

The first come from `ottla.first.users`, which is written as Kafka's `kafka-storage format --add-scram` has it; several
have semicolons between them:

    SCRAM-SHA-512=[name=admin,password=secret]
    SCRAM-SHA-512=[name=admin,salt="BASE64",saltedpassword="BASE64",iterations=4096]

They are added when the broker starts, unless a user of that name is there: what was changed since stays so.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import re
import secrets
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from ottla.broker.controller.change_log import Requester
from ottla.broker.turns import Pause
from ottla.common.errors import ApiError, ErrorCode, OttlaError
from ottla.metadata import nodes
from ottla.metadata.scram import (
    HASHES,
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    MECHANISM_NUMBERS,
    ScramCredential,
    credential_of,
    encode_credentials,
    salted,
)
from ottla.metastore.port import Create, Delete, MetadataStore, Operation, Set, StoreConflict

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

_FIRST_USER = re.compile(r"\s*(SCRAM-SHA-256|SCRAM-SHA-512)=\[([^\[\]]*)\]\s*")
_SALT_BYTES = 24


class Upsertion(NamedTuple):
    user: str
    mechanism: int
    iterations: int
    salt: bytes
    salted_password: bytes


class Deletion(NamedTuple):
    user: str
    mechanism: int


def first_users(text: str) -> dict[str, dict[str, ScramCredential]]:
    """Raises OttlaError, without a password in it."""
    users: dict[str, dict[str, ScramCredential]] = {}
    for part in filter(None, (part.strip() for part in text.split(";"))):
        found = _FIRST_USER.fullmatch(part)
        if found is None:
            raise _unreadable()
        fields = {}
        for pair in found[2].split(","):
            name, equals, value = pair.strip().partition("=")
            if not equals:
                raise _unreadable()
            fields[name.strip().lower()] = value.strip().strip('"')
        users.setdefault(fields.get("name", ""), {})[found[1]] = _first_credential(found[1], fields)
    if "" in users:
        raise _unreadable()
    return users


def _first_credential(mechanism: str, fields: Mapping[str, str]) -> ScramCredential:
    try:
        iterations = int(fields.get("iterations", ITERATIONS_MIN))
        salt = base64.b64decode(fields["salt"], validate=True) if "salt" in fields else secrets.token_bytes(_SALT_BYTES)
        if "saltedpassword" in fields:
            if "salt" not in fields:
                raise _unreadable()
            password = base64.b64decode(fields["saltedpassword"], validate=True)
        else:
            password = salted(mechanism, fields["password"], salt, iterations)
    except (ValueError, KeyError, binascii.Error):
        raise _unreadable() from None
    if not ITERATIONS_MIN <= iterations <= ITERATIONS_MAX:
        raise OttlaError(
            f"ottla.first.users wants {iterations} iterations: {ITERATIONS_MIN} to {ITERATIONS_MAX} are good."
        )
    return credential_of(mechanism, password, salt, iterations)


def _unreadable() -> OttlaError:
    return OttlaError(
        "ottla.first.users cannot be read: it has the form SCRAM-SHA-512=[name=NAME,password=PASSWORD], with "
        "semicolons between several."
    )


def add_first_users(store: MetadataStore, text: str) -> None:
    """Before the image is read."""
    for user, credentials in first_users(text).items():
        path = nodes.scram_path(user)
        if store.get(path) is None:
            with contextlib.suppress(StoreConflict):  # another broker was faster
                store.multi([Create(path, encode_credentials(credentials))])


async def alter(
    broker: Broker, deletions: Iterable[Deletion], upsertions: Iterable[Upsertion], by: Requester
) -> dict[str, ApiError | None]:
    """What became of each user: all of what is asked for one, or nothing of it."""
    removed, added = list(deletions), list(upsertions)
    outcomes: dict[str, ApiError | None] = {}
    seen: set[tuple[str, int]] = set()
    asked: list[Deletion | Upsertion] = [*removed, *added]
    pause = Pause()
    for one in asked:
        await pause.when_due()
        key = one.user, one.mechanism
        fault = _fault(one) or (_TWICE if key in seen else None)
        seen.add(key)
        outcomes[one.user] = outcomes.get(one.user) or fault

    async def change() -> None:
        known = broker.image.scram
        wanted: dict[str, dict[str, ScramCredential]] = {}
        for deletion in removed:
            await pause.when_due()
            credentials = wanted.setdefault(deletion.user, dict(known.get(deletion.user, {})))
            if credentials.pop(MECHANISM_NUMBERS.get(deletion.mechanism, ""), None) is None:
                outcomes[deletion.user] = outcomes[deletion.user] or _ABSENT
        for upsertion in added:
            await pause.when_due()
            credentials = wanted.setdefault(upsertion.user, dict(known.get(upsertion.user, {})))
            if outcomes[upsertion.user] is None:
                mechanism = MECHANISM_NUMBERS[upsertion.mechanism]
                credentials[mechanism] = credential_of(
                    mechanism, upsertion.salted_password, upsertion.salt, upsertion.iterations
                )
        operations: list[Operation] = []
        for user, credentials in wanted.items():
            await pause.when_due()
            if outcomes[user] is not None:
                continue
            path, data = nodes.scram_path(user), encode_credentials(credentials)
            if not credentials:
                operations.append(Delete(path))
            else:
                operations.append(Set(path, data) if user in known else Create(path, data))
        await broker.topics.commit_and_adopt(operations)

    await broker.topics.change(change(), by)
    return outcomes


_TWICE = ApiError(ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request")
_ABSENT = ApiError(ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist")
_NO_NAME = ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
_UNKNOWN = ApiError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
_FEW = ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
_MANY = ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
_NO_KEY = ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Salt and salted password must not be empty")


def _fault(one: Upsertion | Deletion) -> ApiError | None:
    if not one.user:
        return _NO_NAME
    if MECHANISM_NUMBERS.get(one.mechanism) not in HASHES:
        return _UNKNOWN
    if isinstance(one, Deletion):
        return None
    if one.iterations < ITERATIONS_MIN:
        return _FEW
    if one.iterations > ITERATIONS_MAX:
        return _MANY
    return None if one.salt and one.salted_password else _NO_KEY
