"""Passwords of files of users: right ones are let in, and the time of an answer tells nothing of what is stored."""

from __future__ import annotations

import time

import pytest

from ottla.common.passwords import NOBODY, hashed, is_broken_hash, is_password


@pytest.mark.parametrize("stored", ["right \u00e4", hashed("right \u00e4")], ids=["plain", "hash"])
def test_the_right_password_is_let_in_and_no_other(stored: str) -> None:
    assert is_password("right \u00e4", stored)
    for wrong in ("", "right", "right \u00e4 ", stored + "x"):
        assert not is_password(wrong, stored)


def test_nobody_has_a_password() -> None:
    assert not is_password("", NOBODY) and not is_broken_hash(NOBODY)


def test_a_plain_password_takes_as_long_as_a_name_that_is_none() -> None:
    """Else the time tells which names there are. The shortest of some tries, as others may be at work beside."""

    def shortest_s(stored: str) -> float:
        tries = []
        for _ in range(4):
            began_s = time.perf_counter()
            is_password("a guess", stored)
            tries.append(time.perf_counter() - began_s)
        return min(tries)

    assert shortest_s("plain") > shortest_s(NOBODY) / 4
