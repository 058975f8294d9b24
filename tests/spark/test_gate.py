"""The gate between a stream and the tables of its query."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from ottla.common.errors import OttlaError
from ottla.common.failures import Retriable
from ottla.spark.source.gate import Gate, Knocker


class Driver:
    def __init__(self) -> None:
        self.knocks = 0
        self.has_tables = True
        self.error: Exception | None = None
        self.is_ready = threading.Event()
        self.is_ready.set()

    def before_batch(self) -> bool:
        self.knocks += 1
        assert self.is_ready.wait(60)
        if self.error is not None:
            raise self.error
        return self.has_tables


@pytest.fixture
def driver() -> Driver:
    return Driver()


@pytest.fixture
def gate(driver: Driver) -> Iterator[Gate]:
    made = Gate(driver.before_batch)
    yield made
    made.close()


def test_a_stream_waits_until_the_tables_are_ready(driver: Driver, gate: Gate) -> None:
    driver.is_ready.clear()
    knocker = Knocker(gate.token)
    waiting = threading.Thread(target=knocker.knock)
    waiting.start()
    waiting.join(0.1)
    assert waiting.is_alive()
    driver.is_ready.set()
    waiting.join(60)
    assert not waiting.is_alive()
    knocker.knock()
    assert driver.knocks == 2


def test_a_stream_of_a_query_without_tables_knocks_once(driver: Driver, gate: Gate) -> None:
    driver.has_tables = False
    knocker = Knocker(gate.token)
    for _ in range(3):
        knocker.knock()
    Knocker(None).knock()
    assert driver.knocks == 1


@pytest.mark.parametrize(
    ("error", "kind", "sentence"),
    [
        (OttlaError("there is no topic 'x'."), OttlaError, "there is no topic 'x'"),
        (Retriable("no broker answers."), Retriable, "no broker answers"),
        (RuntimeError("a\nlong story"), OttlaError, "a table cannot be read: RuntimeError"),
    ],
)
def test_what_is_in_the_way_is_told_by_its_type(
    driver: Driver, gate: Gate, error: Exception, kind: type[Exception], sentence: str
) -> None:
    driver.error = error
    knocker = Knocker(gate.token)
    with pytest.raises(OttlaError, match=sentence) as told:
        knocker.knock()
    assert type(told.value) is kind
    driver.error = None
    knocker.knock()


def test_nobody_enters_without_the_key(driver: Driver, gate: Gate) -> None:
    port = gate.token.partition(":")[0]
    with pytest.raises(Retriable, match="does not answer"):
        Knocker(f"{port}:{'00' * 32}").knock()
    assert driver.knocks == 0


def test_a_gate_that_is_closed_lets_nobody_wait(driver: Driver, gate: Gate) -> None:
    gate.close()
    gate.close()
    with pytest.raises(Retriable, match="it is being stopped, or gone"):
        Knocker(gate.token).knock()
