"""What metrics cost: a broker that tells them, and is scraped each second, against one that does not."""

from __future__ import annotations

import contextlib
import threading
import urllib.request
from collections.abc import Iterator

from bench.contenders import QUICK, Contender
from bench.lines_wire import single_produce
from bench.measure import Arm, Comparison, InTurns, Values, cost, throughput

CONNECTIONS = 16
SCRAPE_S = 1.0
WITHIN_THREE_PERCENT = 0.97


def settings(port: int) -> dict[str, str]:
    return {"ottla.metrics.listen": f"127.0.0.1:{port}"}


def overhead_line(without: Contender, measured: Contender, port: int) -> Comparison:
    def single(contender: Contender) -> Values:
        with _scraped(port) if contender is measured else contextlib.nullcontext():
            values = single_produce(contender, CONNECTIONS, scale=QUICK)
        return {"single": values["throughput"], "broker CPU": values["broker CPU"]}

    in_turns = InTurns([without, measured], single)
    return Comparison(
        "metrics-overhead",
        f"one-record produce, {CONNECTIONS} conn., metrics scraped each second",
        [
            throughput("single", "requests/s", goal=WITHIN_THREE_PERCENT, digits=0),
            cost("broker CPU", "s per M requests", goal=WITHIN_THREE_PERCENT, digits=1),
        ],
        [
            Arm("no metrics", lambda: in_turns.measure(without), lambda: single(without)),
            Arm("with metrics", lambda: in_turns.measure(measured), lambda: single(measured)),
        ],
    )


@contextlib.contextmanager
def _scraped(port: int) -> Iterator[None]:
    over = threading.Event()

    def scrape() -> None:
        while not over.is_set():
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
                answer.read()
            over.wait(SCRAPE_S)

    thread = threading.Thread(target=scrape)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
