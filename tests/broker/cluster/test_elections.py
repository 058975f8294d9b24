"""Who becomes the controller in the place of one whose process is gone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ottla.broker.cluster.controlling import Controlling, _Target
from ottla.metadata import nodes
from ottla.metastore.embedded import EmbeddedStore
from ottla.metastore.port import Check, Create

NOBODY: Any = None


@pytest.mark.parametrize(
    ("gone", "is_elected"),
    [
        (_Target(1, 5), True),
        # It has lost its session and become the controller again before it registered anew.
        (_Target(1, 6), True),
        # What is gone is a process of before.
        (_Target(1, 4), False),
        (_Target(3, 5), False),
        (None, False),
    ],
)
async def test_a_controller_that_is_gone_is_replaced(tmp_path: Path, gone: _Target | None, is_elected: bool) -> None:
    store = EmbeddedStore(tmp_path / "store")
    who = {"broker": 1, "broker_epoch": 5, "epoch": 3}
    store.multi(
        [Create(nodes.CONTROLLER_EPOCH, nodes.encode({"epoch": 3})), Create(nodes.CONTROLLER, nodes.encode(who))]
    )
    controlling = Controlling(2, store, NOBODY, NOBODY, NOBODY, NOBODY, NOBODY)
    elected = controlling._elect(store, 7, gone)
    assert elected == (Check(nodes.CONTROLLER_EPOCH, 1) if is_elected else None)
    found = store.get(nodes.CONTROLLER)
    assert found is not None
    assert nodes.decode(found.data)["broker"] == (2 if is_elected else 1)
    store.close()
