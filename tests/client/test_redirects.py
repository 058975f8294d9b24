"""Tokens, and the keys that tokens are signed with, come from the address that was written down and from nowhere else:
keys from another place would let anybody in."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ottla.client.access.bearer import BearerHeaders, BearerLogin
from ottla.client.access.jwks import TrustedKeys
from ottla.common.errors import OttlaError
from tests.support.elsewhere import Elsewhere, elsewhere

__all__ = ["elsewhere"]

STATUSES = [301, 302, 303, 307, 308]
KEYS = json.dumps({"keys": [{"kty": "oct", "kid": "anybody", "k": "c2VjcmV0" * 8}]}).encode()


def trusted(url: str) -> TrustedKeys:
    def start(read: Callable[[], object]) -> None:
        read()

    return TrustedKeys(
        url, setting="jwks", now_ms=lambda: int(time.monotonic() * 1_000), log=logging.getLogger("test"), start=start
    )


@pytest.mark.parametrize("status", STATUSES)
def test_keys_are_not_read_from_where_an_answer_points(elsewhere: Elsewhere, status: int) -> None:
    elsewhere.status, elsewhere.body = status, KEYS
    with pytest.raises(OttlaError, match=r"sends us to http://127\.0\.0\.1:\d+/subjects, which you may name instead"):
        trusted(f"http://{elsewhere.address}/keys")
    assert elsewhere.shown == []


def test_keys_stay_as_they_were_when_their_place_begins_to_point_elsewhere(
    elsewhere: Elsewhere, caplog: pytest.LogCaptureFixture
) -> None:
    elsewhere.status, elsewhere.body = 200, KEYS
    elsewhere.own_body = KEYS.replace(b"anybody", b"ours")
    keys = trusted(f"http://{elsewhere.address}/keys")
    assert keys.find("ours")
    elsewhere.status = 302
    keys.refresh(0)
    assert "keeping the keys of tokens as they were" in caplog.text
    assert keys.find("ours")
    with pytest.raises(KeyError):
        keys.find("anybody")
    assert elsewhere.shown == []


@pytest.mark.parametrize("status", STATUSES)
def test_tokens_are_not_fetched_from_where_an_answer_points(elsewhere: Elsewhere, status: int) -> None:
    elsewhere.status, elsewhere.body = status, b'{"access_token": "somebody\'s"}'
    login = BearerLogin(
        "OAUTHBEARER", endpoint=f"http://{elsewhere.address}/token", client_id="sales", client_secret="secret"
    )
    with pytest.raises(OttlaError, match=r"sends us to http://127\.0\.0\.1:\d+/subjects, which you may name instead"):
        BearerHeaders(login).get()
    assert elsewhere.shown == []


def test_keys_of_a_file_are_read_as_before(tmp_path: Path) -> None:
    (tmp_path / "keys").write_bytes(KEYS)
    assert trusted((tmp_path / "keys").as_uri()).find("anybody")
