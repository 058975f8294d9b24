"""Stock trades: the ten largest movers of each minute, in two stages.

    python examples/streams/largest_movers.py
    ottla streams run examples/streams/largest_movers.py --create-topics

First stage: by symbol, the first and the last price of a minute. Second stage: all symbols of a minute come together
under its start, and the ten whose price moved most are kept. Each stage sends a result when its minute is over.
"""

from __future__ import annotations

from typing import Any

from showing import Row, show

from ottla.streams import Application, StreamsBuilder, Suppressed, TimeWindows, Windowed, minutes, seconds, serdes

LARGEST = 10
Move = dict[str, Any]

builder = StreamsBuilder(key=serdes.string)
trades = builder.stream("trades")


def seen(symbol: str, trade: Move, prices: list[float]) -> list[float]:
    return [prices[0] if prices else trade["price"], trade["price"]]


prices = (
    trades.group_by_key()
    .windowed_by(TimeWindows.of(minutes(1), grace=seconds(5)))
    .aggregate(list, seen, store="prices")
    .suppress(Suppressed.until_window_closes(), name="minute-is-over")
)


def by_minute(window: Windowed, first_and_last: list[float]) -> tuple[str, Move]:
    first, last = first_and_last
    return str(window.window.start), {"symbol": window.key, "move": round(100 * (last / first - 1), 2)}


def put(minute: str, move: Move, best: list[Move]) -> list[Move]:
    return sorted([*best, move], key=lambda each: (-abs(each["move"]), each["symbol"]))[:LARGEST]


moves = prices.to_stream().map(by_minute)
movers = moves.group_by_key(name="by-minute").aggregate(list, put, store="movers")
movers.to_stream().to("largest-movers")

app = Application("largest-movers", builder)

ROWS: list[Row] = [
    ("trades", "ACME", {"price": 100.0}, 0),
    ("trades", "OTTLA", {"price": 10.0}, 1_000),
    ("trades", "ACME", {"price": 101.0}, 30_000),
    ("trades", "OTTLA", {"price": 9.0}, 59_000),
    ("trades", "ACME", {"price": 99.0}, 70_000),
    ("trades", "OTTLA", {"price": 9.5}, 200_000),
]

if __name__ == "__main__":
    show(app, ROWS, "largest-movers")
