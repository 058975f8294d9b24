"""Who is let in by HTTP's Basic scheme, and what is remembered of that."""

from __future__ import annotations

import asyncio
import base64

import pytest

from ottla.common import basic_logins, turns_by_address
from ottla.common.basic_logins import BasicLogins

HERE = "10.0.0.1"


def header(name: str, password: str, scheme: str = "Basic") -> bytes:
    return f"{scheme} {base64.b64encode(f'{name}:{password}'.encode()).decode()}".encode()


def test_only_the_right_password_gets_in() -> None:
    async def check() -> None:
        logins = BasicLogins({"ada": "secret", "by-certificate": None})
        assert await logins.name(header("ada", "secret"), HERE) == "ada"
        assert await logins.name(header("ada", "secret"), HERE) == "ada"
        assert await logins.name(header("ada", "another"), HERE) is None
        assert await logins.name(header("by-certificate", ""), HERE) is None
        assert await logins.name(header("nobody", "secret"), HERE) is None
        assert await logins.name(b"Basic \xff", HERE) is None

    asyncio.run(check())


def test_what_is_remembered_of_logins_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """One login can be written in many ways: each would be kept."""
    monkeypatch.setattr(basic_logins, "KNOWN_MAX", 3)

    async def check() -> int:
        logins = BasicLogins({"ada": "secret"})
        for scheme in ("basic", "Basic", "bAsic", "baSic", "basIc"):
            assert await logins.name(header("ada", "secret", scheme), HERE) == "ada"
        return len(logins._known)

    assert asyncio.run(check()) == 3


def test_who_guesses_by_the_hundred_waits_behind_himself(monkeypatch: pytest.MonkeyPatch) -> None:
    """A neighbour at another address logs in after as many guesses as were looked at already, and one."""
    looked_at: list[str] = []

    def look(given: str, stored: str) -> bool:
        looked_at.append(given)
        return given == stored

    monkeypatch.setattr(basic_logins, "is_password", look)
    monkeypatch.setattr(turns_by_address, "WAITING_MAX", 50)

    async def check() -> None:
        logins = BasicLogins({"ada": "secret"})
        guesses = [asyncio.create_task(logins.name(header("ada", f"{number}"), HERE)) for number in range(100)]
        await asyncio.sleep(0)
        assert await logins.name(header("ada", "secret"), "10.0.0.2") == "ada"
        assert looked_at.index("secret") <= 2
        assert await asyncio.gather(*guesses) == [None] * 100
        assert len(looked_at) == 51, "and those who are too many are not looked at"
        assert not logins._turns

    asyncio.run(check())


def test_a_login_that_comes_several_times_at_once_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[str] = []
    monkeypatch.setattr(basic_logins, "is_password", lambda given, _: looked_at.append(given) is None)

    async def check() -> None:
        logins = BasicLogins({"ada": "secret"})
        same = header("ada", "secret")
        assert await asyncio.gather(*(logins.name(same, HERE) for _ in range(50))) == ["ada"] * 50

    asyncio.run(check())
    assert looked_at == ["secret"]
