"""What our client of a registry makes of answers that no registry of ours gives."""

from __future__ import annotations

import pytest

from ottla.client.schema_registry import Refused, RegistryClient
from tests.support.elsewhere import Elsewhere, elsewhere

__all__ = ["elsewhere"]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_login_is_not_taken_to_where_an_answer_points(elsewhere: Elsewhere, status: int) -> None:
    elsewhere.status = status
    client = RegistryClient(f"http://ada:secret@{elsewhere.address}")
    with pytest.raises(Refused, match=r"sends us to http://127\.0\.0\.1:\d+/subjects") as found:
        client.get("subjects")
    assert found.value.code == status
    with pytest.raises(Refused, match="sends us to"):
        client.post({}, "subjects")
    assert elsewhere.shown == []
