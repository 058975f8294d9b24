"""Whether there is room for more state in this worker. State lives in its memory: a system that has none left kills a
process, and all that anybody would hear is that it is gone, again and again. It is refused before, with a sentence.

Room is what the strictest of three leaves: the limit that Spark sets (`spark.executor.pyspark.memory`), that of the
container, and what the machine has. Where the system does not tell, there is no limit.
"""

from __future__ import annotations

import resource
from contextlib import suppress
from pathlib import Path

from ottla.common.errors import OttlaError

# Of a limit that much stays free, for what is on its way through the worker, but no more than an eighth of it.
SPARE_BYTES = 256 * 1024 * 1024
# A worker with next to no state has half of it.
SMALL_BYTES = 256 * 1024 * 1024
_MIB = 1024 * 1024
# A look costs as much as a hundred records.
RECORDS_BETWEEN_LOOKS = 10_000
_CONTAINER = Path("/sys/fs/cgroup")
_MACHINE = Path("/proc/meminfo")
_PROCESS = Path("/proc/self/statm")


class StateTooLarge(OttlaError):
    """More of it than a worker has memory for."""


class Room:
    """`where`: who sets the limit."""

    def __init__(self, where: str, limit_bytes: int, left_bytes: int) -> None:
        self.where = where
        self.limit_bytes = limit_bytes
        self.left_bytes = left_bytes

    @property
    def is_used_up(self) -> bool:
        return self.left_bytes < min(SPARE_BYTES, self.limit_bytes // 8)

    @property
    def said(self) -> str:
        left, limit = (f"{max(0, count) // _MIB:,}" for count in (self.left_bytes, self.limit_bytes))
        return f"{self.where} has {left} of {limit} MiB left"


def rooms() -> list[Room]:
    found = [_of_process(), _of_container(), _of_machine()]
    return [room for room in found if room is not None]


def room_that_is_used_up() -> Room | None:
    """None, too, in a worker that has taken little: where others use up the memory, it is not to blame, and its end
    would give nothing back."""
    return next((room for room in rooms() if room.is_used_up), None) if _resident_bytes() > SMALL_BYTES else None


def _resident_bytes() -> int:
    with suppress(OSError, ValueError, IndexError):
        return int(_PROCESS.read_text().split()[1]) * resource.getpagesize()
    return 0


def refusal(what: str, why: str) -> str:
    """`what`: whose memory it is, as "the state of task 0_1 of application 'orders'"."""
    return (
        f"{what} does not fit into the memory of its Python worker: {why}. Nothing of this batch was written. Use more "
        "partitions and more executors, or keep less: a shorter retention or history, smaller values."
    )


def why_not(entries: int, room: Room) -> str:
    return f"it has {entries:,} entries, and {room.said}"


def _of_process() -> Room | None:
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return None
    with suppress(OSError, ValueError):
        pages = int(_PROCESS.read_text().split()[0])
        return Room("`spark.executor.pyspark.memory`", limit, limit - pages * resource.getpagesize())
    return None


def _of_container() -> Room | None:
    with suppress(OSError, ValueError):
        limit = int((_CONTAINER / "memory.max").read_text())  # "max": none
        used = int((_CONTAINER / "memory.current").read_text())
        # Of files that were read: given back when somebody needs the room.
        cached = _numbers((_CONTAINER / "memory.stat").read_text()).get("inactive_file", 0)
        return Room("the container", limit, limit - used + cached)
    return None


def _of_machine() -> Room | None:
    with suppress(OSError, ValueError, KeyError):
        known = _numbers(_MACHINE.read_text())
        return Room("the machine", known["MemTotal:"] * 1024, known["MemAvailable:"] * 1024)
    return None


def _numbers(text: str) -> dict[str, int]:
    """Lines of a name and a number."""
    rows = [line.split() for line in text.splitlines()]
    return {row[0]: int(row[1]) for row in rows if len(row) > 1 and row[1].isdigit()}
