"""Client quotas over the wire: set them, and read them back."""

from __future__ import annotations

from typing import Any

from ottla.protocol import messages as m
from tests.support.raw_client import RawClient

_EXACT, _DEFAULT, _SPECIFIED = 0, 1, 2


def alter_quota(client: RawClient, entity: dict[str, str | None], **values: float | None) -> Any:
    """What is answered for this entity; a value of None removes the limit."""
    one = m.AlterClientQuotasRequest
    entry = one.EntryData(
        entity=[one.EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()],
        ops=[
            one.OpData(key=key, value=0.0 if value is None else value, remove=value is None)
            for key, value in values.items()
        ],
    )
    (answer,) = client.call(one(entries=[entry]), 1).entries
    return answer


def set_quota(client: RawClient, entity: dict[str, str | None], **values: float | None) -> None:
    answer = alter_quota(client, entity, **values)
    assert answer.error_code == 0, answer.error_message


def quotas(
    client: RawClient, *, strict: bool = False, **wanted: str | None
) -> dict[tuple[tuple[str, str | None], ...], dict[str, float]]:
    """By entity. `user="ada"`, `user=None` for the default, `user=ANY` for all of them."""
    one = m.DescribeClientQuotasRequest
    components = []
    for kind, name in wanted.items():
        match_type = _SPECIFIED if name == ANY else _DEFAULT if name is None else _EXACT
        match = name if match_type == _EXACT else None
        components.append(one.ComponentData(entity_type=kind.replace("_", "-"), match_type=match_type, match=match))
    answer = client.call(one(components=components, strict=strict), 1)
    assert answer.error_code == 0, answer.error_message
    return {
        tuple(sorted((part.entity_type, part.entity_name) for part in entry.entity)): {
            value.key: value.value for value in entry.values
        }
        for entry in answer.entries
    }


ANY = "\0any"
