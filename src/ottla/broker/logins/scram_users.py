"""Users who log in by SCRAM: how an admin changes them. The first of them come from `controller/first_users.py`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from ottla.broker.controller.change_log import Requester
from ottla.broker.turns import Pause
from ottla.common.errors import ApiError, ErrorCode
from ottla.metadata import nodes
from ottla.metadata.scram import (
    HASHES,
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    MECHANISM_NUMBERS,
    ScramCredential,
    credential_of,
    encode_credentials,
)
from ottla.metastore.port import Create, Delete, Operation, Set

if TYPE_CHECKING:
    from ottla.broker.broker import Broker


class Upsertion(NamedTuple):
    user: str
    mechanism: int
    iterations: int
    salt: bytes
    salted_password: bytes


class Deletion(NamedTuple):
    user: str
    mechanism: int


async def alter(
    broker: Broker, deletions: Iterable[Deletion], upsertions: Iterable[Upsertion], by: Requester
) -> dict[str, ApiError | None]:
    """What became of each user: all of what is asked for one, or nothing of it."""
    removed, added = list(deletions), list(upsertions)
    outcomes: dict[str, ApiError | None] = {}
    seen: set[tuple[str, int]] = set()
    asked: list[Deletion | Upsertion] = [*removed, *added]
    pause = Pause()
    for credential in asked:
        await pause.when_due()
        key = credential.user, credential.mechanism
        fault = _fault(credential) or (_TWICE if key in seen else None)
        seen.add(key)
        outcomes[credential.user] = outcomes.get(credential.user) or fault

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
