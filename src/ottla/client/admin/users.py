"""Users of SCRAM: who there is, and how they are added, changed and removed (KIP-554). Passwords stay here: a broker is
told what it takes to check one."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping

from ottla.client.admin.admin_answers import check_answer
from ottla.client.cluster import ClusterClient
from ottla.common.errors import ErrorCode
from ottla.metadata.scram import MECHANISM_NUMBERS, salted
from ottla.protocol.messages import AlterUserScramCredentialsRequest, DescribeUserScramCredentialsRequest

NUMBERS = {name: number for number, name in MECHANISM_NUMBERS.items()}
_SALT_BYTES = 24


def describe_users(cluster: ClusterClient, names: Iterable[str] | None = None) -> dict[str, dict[str, int]]:
    """The mechanisms of each user that exists, with their iterations; without names of all."""
    one = DescribeUserScramCredentialsRequest.UserName
    wanted = None if names is None else [one(name=name) for name in names]

    def ask() -> dict[str, dict[str, int]]:
        answer = cluster.any_broker().call(DescribeUserScramCredentialsRequest(users=wanted))
        check_answer(answer.error_code, answer.error_message, "the list of users")
        found: dict[str, dict[str, int]] = {}
        for row in answer.results:
            if row.error_code == ErrorCode.RESOURCE_NOT_FOUND:
                continue
            check_answer(row.error_code, row.error_message, f"user '{row.user}'")
            found[row.user] = {MECHANISM_NUMBERS[info.mechanism]: info.iterations for info in row.credential_infos}
        return dict(sorted(found.items()))

    return cluster.settled(ask)


def set_password(cluster: ClusterClient, user: str, password: str, mechanisms: Mapping[str, int]) -> None:
    """`mechanisms` with their iterations. Makes the user if there is none."""
    one = AlterUserScramCredentialsRequest.ScramCredentialUpsertion
    upsertions = []
    for mechanism, iterations in mechanisms.items():
        salt = secrets.token_bytes(_SALT_BYTES)
        upsertions.append(
            one(
                name=user,
                mechanism=NUMBERS[mechanism],
                iterations=iterations,
                salt=salt,
                salted_password=salted(mechanism, password, salt, iterations),
            )
        )
    _alter(cluster, AlterUserScramCredentialsRequest(deletions=[], upsertions=upsertions))


def delete_user(cluster: ClusterClient, user: str, mechanisms: Iterable[str]) -> None:
    one = AlterUserScramCredentialsRequest.ScramCredentialDeletion
    deletions = [one(name=user, mechanism=NUMBERS[mechanism]) for mechanism in mechanisms]
    _alter(cluster, AlterUserScramCredentialsRequest(deletions=deletions, upsertions=[]))


def _alter(cluster: ClusterClient, request: AlterUserScramCredentialsRequest) -> None:
    def ask() -> None:
        for row in cluster.any_broker().call(request).results:
            check_answer(row.error_code, row.error_message, f"user '{row.user}'")

    cluster.settled(ask)
