"""Who is let in by HTTP's Basic scheme, and what is remembered of that."""

from __future__ import annotations

import asyncio
import base64

import pytest

from ottla.common import basic_logins
from ottla.common.basic_logins import BasicLogins


def header(name: str, password: str, scheme: str = "Basic") -> bytes:
    return f"{scheme} {base64.b64encode(f'{name}:{password}'.encode()).decode()}".encode()


def test_only_the_right_password_gets_in() -> None:
    async def check() -> None:
        logins = BasicLogins({"ada": "secret", "by-certificate": None})
        assert await logins.name(header("ada", "secret")) == "ada"
        assert await logins.name(header("ada", "secret")) == "ada"
        assert await logins.name(header("ada", "another")) is None
        assert await logins.name(header("by-certificate", "")) is None
        assert await logins.name(header("nobody", "secret")) is None
        assert await logins.name(b"Basic \xff") is None

    asyncio.run(check())


def test_what_is_remembered_of_logins_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """One login can be written in many ways: each would be kept."""
    monkeypatch.setattr(basic_logins, "KNOWN_MAX", 3)

    async def check() -> int:
        logins = BasicLogins({"ada": "secret"})
        for scheme in ("basic", "Basic", "bAsic", "baSic", "basIc"):
            assert await logins.name(header("ada", "secret", scheme)) == "ada"
        return len(logins._known)

    assert asyncio.run(check()) == 3
