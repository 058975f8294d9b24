"""What a node of a topology does with records, at run time.

A task makes one operator for each node, wires their `forward` to the nodes below, and calls `init`. Key, value, time
and headers go from one to the next as plain arguments: an object for every hop would cost more than most hops do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ottla.streams.record import Headers

if TYPE_CHECKING:
    from ottla.streams.processing.context import TaskContext

Forward = Callable[[Any, Any, int, Headers], None]


class Operator:
    # Attributes that outlive a restart: times that were seen. They are numbers.
    remembered: tuple[str, ...] = ()
    forward: Forward

    def init(self, context: TaskContext) -> None:
        """Once, when stores and the operators below are there."""

    def process(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """When the task ends."""


def forward_to(children: list[Operator]) -> Forward:
    if not children:
        return _nowhere
    if len(children) == 1:
        return children[0].process
    calls = tuple(child.process for child in children)

    def forward(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        for call in calls:
            call(key, value, timestamp, headers)

    return forward


def _nowhere(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
    pass
