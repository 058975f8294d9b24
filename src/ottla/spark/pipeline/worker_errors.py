"""What was raised in another Python process, from the traceback that Spark passes on as text.

The text of an exception may hold anything, such as the traceback of somebody else in a log that a pipeline reads. So
nothing is searched for: the first traceback is read line by line as Python writes it, and what is ours is told by the
file that raised it together with the class.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ottla.spark.ship import ROOMS

_BEGIN = "Traceback (most recent call last):"
_CHAIN = (
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
)
_FRAME = re.compile(r'  File "(.+)", line \d+')
_RAISED = re.compile(r"([A-Za-z_][\w.]*)(?:: (.*))?")
_OUR_FILE = re.compile(rf"[/\\]ottla[/\\](?:{'|'.join(ROOMS)})[/\\]")


@dataclass(frozen=True)
class Raised:
    # With its module, unless that is `builtins`.
    kind: str
    # The first line of what it says.
    said: str
    is_ours: bool

    @property
    def name(self) -> str:
        return self.kind.rpartition(".")[2]


def raised_in(text: str) -> Raised | None:
    """By the first traceback in `text`, or the last one of its chain. None where there is no traceback."""
    lines = text.splitlines()
    at = next((number for number, line in enumerate(lines) if line.rstrip().endswith(_BEGIN)), None)
    found = None
    while at is not None:
        file, at = "", at + 1
        while at < len(lines) and lines[at].startswith("  "):
            if frame := _FRAME.match(lines[at]):
                file = frame[1]
            at += 1
        match = _RAISED.fullmatch(lines[at].rstrip()) if at < len(lines) else None
        if match is None:
            break
        kind, said = match[1], (match[2] or "").strip()
        found = Raised(kind, said, kind.startswith("ottla.") and _OUR_FILE.search(file) is not None)
        at = _next_of_chain(lines, at)
    return found


def _next_of_chain(lines: list[str], at: int) -> int | None:
    for number in range(at, len(lines) - 2):
        if lines[number] in _CHAIN:
            return number + 2 if lines[number + 2] == _BEGIN else None
    return None
