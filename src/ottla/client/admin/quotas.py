"""Quotas of clients over the wire (KIP-546): what is set for whom, and how it is changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ottla.client.admin.admin_answers import check_answer
from ottla.client.cluster import ClusterClient
from ottla.protocol.messages import AlterClientQuotasRequest, DescribeClientQuotasRequest

# How a component of a question is met.
_EXACT, _DEFAULT = 0, 1

# The kinds of whom a quota is for; None as a name means all who have none of their own.
Entity = Mapping[str, str | None]


@dataclass(frozen=True)
class Quota:
    entity: dict[str, str | None]
    values: dict[str, float]


def describe_quotas(cluster: ClusterClient, wanted: Entity, *, others: bool) -> list[Quota]:
    """What is set for whom `wanted` names; with `others` also where it is only a part of whom they are for."""
    one = DescribeClientQuotasRequest.ComponentData
    request = DescribeClientQuotasRequest(
        components=[
            one(entity_type=kind, match_type=_DEFAULT if name is None else _EXACT, match=name)
            for kind, name in wanted.items()
        ],
        strict=not others,
    )

    def ask() -> list[Quota]:
        answer = cluster.any_broker().call(request)
        check_answer(answer.error_code, answer.error_message, "the quotas")
        return [
            Quota(
                {part.entity_type: part.entity_name for part in entry.entity},
                {row.key: row.value for row in sorted(entry.values, key=lambda row: row.key)},
            )
            for entry in answer.entries or ()
        ]

    def order(quota: Quota) -> list[tuple[str, bool, str]]:
        return [(kind, name is not None, name or "") for kind, name in sorted(quota.entity.items())]

    return sorted(cluster.settled(ask), key=order)


def alter_quotas(
    cluster: ClusterClient, entity: Entity, changes: Mapping[str, float | None], *, validate_only: bool
) -> None:
    """None removes a value."""
    message = AlterClientQuotasRequest
    request = message(
        entries=[
            message.EntryData(
                entity=[message.EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()],
                ops=[
                    message.OpData(key=key, value=0.0 if value is None else value, remove=value is None)
                    for key, value in changes.items()
                ],
            )
        ],
        validate_only=validate_only,
    )

    def ask() -> None:
        for row in cluster.any_broker().call(request).entries:
            check_answer(row.error_code, row.error_message, "the quota")

    cluster.settled(ask)
