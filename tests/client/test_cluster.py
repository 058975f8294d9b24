"""What a client knows of a cluster is as old as the last failure."""

from __future__ import annotations

import pytest

from ottla.client.cluster import ClusterClient, Unreachable
from tests.support.scripted_broker import NODE, ScriptedBroker


def test_a_broker_that_comes_back_at_another_address_is_found_there() -> None:
    before, after = ScriptedBroker({"t": 1}), ScriptedBroker({"t": 1})
    with after, ClusterClient(f"{before.bootstrap},{after.bootstrap}") as cluster:
        with before:
            assert cluster.broker(NODE).address == before.bootstrap
        cluster.close()
        with pytest.raises(Unreachable, match=f"broker {NODE} cannot be reached at {before.bootstrap}"):
            cluster.broker(NODE)
        assert cluster.broker(NODE).address == after.bootstrap
