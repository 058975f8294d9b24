"""Lists in a storm: several clients append to the same lists and read them, in transactions that overlap."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.testing.list_checker import Element, ListChecker
from tests.crash.list_worker import LISTS, TOPIC
from tests.crash.storm import Storm
from tests.support.brokers import OttlaProcess
from tests.support.proxy import Proxy


class AppendLists(Storm):
    topic = TOPIC
    partitions = LISTS
    worker_module = "tests.crash.list_worker"

    def __init__(self, broker: OttlaProcess, proxy: Proxy, workers: Sequence[str], seed: int) -> None:
        self.checker = ListChecker()
        super().__init__(broker, proxy, workers, seed, self.checker)

    def note(self, producer: str, start: int, words: list[str]) -> None:
        kind = words[0]
        if kind == "begun":
            number, places = int(words[1]), [one.split(":") for one in words[2:]]
            self.checker.begun(
                [Element(producer, number, part, int(one), int(seen)) for part, (one, seen) in enumerate(places)]
            )
        elif kind == "read":
            within = (producer, int(words[1])) if words[1] != "0" else None
            values = [word.encode() for word in words[3:]]
            self.checker.read(f"{producer}, start {start}", int(words[2]), values, within=within)
        elif kind in ("committed", "aborted"):
            self.checker.ended(producer, int(words[1]), committed=kind == "committed")

    def audit(self, deadline: float) -> None:
        for index, records in self.read_log(deadline).items():
            self.checker.final(index, [value for _, value in sorted(records.items())])
