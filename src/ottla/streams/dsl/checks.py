"""Mistakes in a program, told in the line that has them: later they would be told by the first record, or never."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.common.errors import OttlaError

if TYPE_CHECKING:
    from ottla.streams.dsl.naming import Graph


def check_function(given: Any, where: str) -> None:
    if not callable(given):
        raise OttlaError(f"`{where}` takes a function, not {type(given).__name__}.")


def refuse_other(graph: Graph, other: Graph) -> None:
    if graph is not other:
        raise OttlaError("streams and tables of different builders cannot meet: make all with one StreamsBuilder.")
