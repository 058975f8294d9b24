"""Which names a topic may have."""

from __future__ import annotations

import pytest

from ottla.metadata.topic_names import collision_key, name_fault


@pytest.mark.parametrize("name", ["a", "A-b_c.9", "...", "__consumer_offsets", "x" * 249])
def test_legal_names(name: str) -> None:
    assert name_fault(name) is None


@pytest.mark.parametrize("name", ["", ".", "..", "x" * 250, "a/b", "a b", "ä", "a\0", "a\n", "a:b", "../x"])
def test_illegal_names(name: str) -> None:
    fault = name_fault(name)
    assert fault is not None
    assert fault.startswith("Topic name is invalid")


def test_names_that_differ_only_in_dot_and_underscore_collide() -> None:
    assert collision_key("a.b") == collision_key("a_b")
    assert collision_key("a.b") != collision_key("ab")
