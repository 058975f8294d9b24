"""The way from a request to its handler."""

from __future__ import annotations

import pytest

from ottla.broker import router as module
from ottla.broker.apis import APIS
from ottla.broker.router import Router
from ottla.testing import Broker


def test_all_handlers_are_loaded_before_somebody_needs_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is read from disk at the first request fails when no file descriptor is left."""
    monkeypatch.setattr(module, "_WARM_UP_PAUSE_S", 0)

    async def loaded_by_a_new_router() -> set[int]:
        router = Router(broker._running().broker)
        await router.warm_up()
        return set(router._routes)

    with Broker() as broker:
        assert broker.run(loaded_by_a_new_router()) == set(APIS)
