"""The way from a request to its handler."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from ottla.broker import router as module
from ottla.broker.apis import APIS
from ottla.broker.router import Router
from ottla.common.errors import ErrorCode
from ottla.common.steps import Steps
from ottla.protocol import messages as m
from ottla.protocol.codec import Message
from ottla.testing import Broker
from tests.support.loop_broker import LoopBroker


def test_all_handlers_are_loaded_before_somebody_needs_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is read from disk at the first request fails when no file descriptor is left."""
    monkeypatch.setattr(module, "_WARM_UP_PAUSE_S", 0)

    async def loaded_by_a_new_router() -> set[int]:
        router = Router(broker.server.broker)
        await router.warm_up()
        return set(router._routes)

    with Broker() as broker:
        assert broker.run(loaded_by_a_new_router()) == set(APIS)


def _at_once(*_: Any) -> Any:
    raise RuntimeError("a bug")


def _later(*_: Any) -> Steps[Message]:
    yield None
    raise RuntimeError("a bug")


@pytest.mark.parametrize("fail", [_at_once, _later])
@pytest.mark.parametrize(
    ("handler", "request_", "version"),
    [
        ("transactions.add_partitions_to_txn", m.AddPartitionsToTxnRequest(), 3),
        ("groups.find_coordinator", m.FindCoordinatorRequest(), 4),
        ("topics.metadata", m.MetadataRequest(topics=[]), 9),
        ("groups.offset_fetch", m.OffsetFetchRequest(), 9),
        ("groups.delete_groups", m.DeleteGroupsRequest(), 2),
    ],
)
async def test_a_failure_that_an_answer_has_no_place_for_closes_the_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, handler: str, request_: Message, version: int, fail: Any
) -> None:
    """A transactional producer would take an answer to AddPartitionsToTxn that names no partition for a success."""
    monkeypatch.setattr(import_module(f"ottla.broker.handlers.{handler}"), "handle", fail)
    async with LoopBroker(tmp_path) as broker:
        with pytest.raises((AssertionError, RuntimeError), match=r"the connection was closed|a bug"):
            await broker.call(request_, version)


@pytest.mark.parametrize("fail", [_at_once, _later])
async def test_a_failure_is_told_in_the_answers_own_error_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fail: Any
) -> None:
    monkeypatch.setattr(import_module("ottla.broker.handlers.groups.find_coordinator"), "handle", fail)
    async with LoopBroker(tmp_path) as broker:
        answer = await broker.call(m.FindCoordinatorRequest(), 3)
        assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
