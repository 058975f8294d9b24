from __future__ import annotations

from ottla.broker.coordinators.timer_table import TimerTable
from ottla.common.result import TimerOrder

A, B = ("session", "g", "a"), ("session", "g", "b")


def due(table: TimerTable, now_ms: int) -> list[tuple[object, object]]:
    found = []
    while (one := table.pop_due(now_ms)) is not None:
        found.append(one)
    return found


def test_timers_fire_in_order_and_once() -> None:
    table = TimerTable()
    table.carry_out([TimerOrder(A, 20, "x"), TimerOrder(B, 10)], 0)
    assert table.next_deadline() == 10
    assert due(table, 20) == [(B, None), (A, "x")]
    assert due(table, 99) == []
    assert len(table) == 0


def test_a_timer_can_be_moved_out_and_in() -> None:
    table = TimerTable()
    table.carry_out([TimerOrder(A, 10)], 0)
    table.carry_out([TimerOrder(A, 10)], 5)
    assert due(table, 10) == []
    assert due(table, 15) == [(A, None)]
    table.carry_out([TimerOrder(A, 100)], 20)
    table.carry_out([TimerOrder(A, 1)], 20)
    assert due(table, 21) == [(A, None)]
    assert due(table, 200) == []


def test_moving_a_timer_often_does_not_make_the_table_grow() -> None:
    table = TimerTable()
    for now_ms in range(10_000):
        table.carry_out([TimerOrder(A, 45_000)], now_ms)
    assert len(table._heap) == 1


def test_a_cancelled_timer_does_not_fire_and_can_be_set_again() -> None:
    table = TimerTable()
    table.carry_out([TimerOrder(A, 10), TimerOrder(A, None)], 0)
    assert A not in table
    assert due(table, 10) == []
    table.carry_out([TimerOrder(A, 10)], 10)
    assert due(table, 20) == [(A, None)]


def test_a_timer_that_is_kept_is_not_moved() -> None:
    table = TimerTable()
    table.carry_out([TimerOrder(A, 10, 1, True)], 0)
    table.carry_out([TimerOrder(A, 10, 2, True)], 5)
    assert due(table, 10) == [(A, 1)]
