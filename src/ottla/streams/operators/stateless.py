"""Operators that keep nothing: filter, map, flat map, branch, and their like."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ottla.common.errors import OttlaError
from ottla.streams.processing.operator import Forward, Operator
from ottla.streams.record import Headers

Pair = tuple[Any, Any]


class Filter(Operator):
    def __init__(self, predicate: Callable[[Any, Any], bool], *, wanted: bool) -> None:
        self._predicate = predicate
        self._wanted = wanted

    def process(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        if bool(self._predicate(key, value)) is self._wanted:
            self.forward(key, value, timestamp, headers)


class Map(Operator):
    def __init__(self, mapper: Callable[[Any, Any], Pair]) -> None:
        self._mapper = mapper

    def process(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        new_key, new_value = pair_of(self._mapper(key, value), "map")
        self.forward(new_key, new_value, timestamp, headers)


class MapValues(Operator):
    def __init__(self, mapper: Callable[[Any], Any]) -> None:
        self._mapper = mapper

    def process(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        self.forward(key, self._mapper(value), timestamp, headers)


class MapValuesWithKey(Operator):
    def __init__(self, mapper: Callable[[Any, Any], Any]) -> None:
        self._mapper = mapper

    def process(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        self.forward(key, self._mapper(key, value), timestamp, headers)


class FlatMap(Operator):
    def __init__(self, mapper: Callable[[Any, Any], Iterable[Pair]]) -> None:
        self._mapper = mapper

    def process(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        for made in self._mapper(key, value):
            new_key, new_value = pair_of(made, "flat_map")
            self.forward(new_key, new_value, timestamp, headers)


class FlatMapValues(Operator):
    def __init__(self, mapper: Callable[[Any], Iterable[Any]]) -> None:
        self._mapper = mapper

    def process(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        forward = self.forward
        for each in self._mapper(value):
            forward(key, each, timestamp, headers)


class FlatMapValuesWithKey(Operator):
    def __init__(self, mapper: Callable[[Any, Any], Iterable[Any]]) -> None:
        self._mapper = mapper

    def process(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        for each in self._mapper(key, value):
            self.forward(key, each, timestamp, headers)


class SelectKey(Operator):
    def __init__(self, selector: Callable[[Any, Any], Any]) -> None:
        self._selector = selector

    def process(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        self.forward(self._selector(key, value), value, timestamp, headers)


class Peek(Operator):
    """Also `foreach`, below which there is nothing."""

    def __init__(self, action: Callable[[Any, Any], object]) -> None:
        self._action = action

    def process(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        self._action(key, value)
        self.forward(key, value, timestamp, headers)


class PassThrough(Operator):
    """Merged streams, and whatever needs a name of its own."""

    def process(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        self.forward(key, value, timestamp, headers)


class HasKey(Operator):
    """Before a repartition topic: a record without a key has no partition to go to where it would be aggregated."""

    def process(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        if key is not None:
            self.forward(key, value, timestamp, headers)


class Branch(Operator):
    """To the first branch whose predicate holds. The task sets `branches` in the order of the nodes below."""

    def __init__(self, predicates: Sequence[Callable[[Any, Any], bool]]) -> None:
        self._predicates = predicates
        self.branches: list[Forward] = []

    def process(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        for predicate, forward in zip(self._predicates, self.branches, strict=True):
            if predicate(key, value):
                forward(key, value, timestamp, headers)
                return


def always(key: Any, value: Any) -> bool:
    """Of the default branch."""
    return True


def pair_of(made: Any, what: str) -> Pair:
    if not isinstance(made, tuple) or len(made) != 2:
        raise OttlaError(f"the function of `{what}` must give a pair (key, value), and gave {type(made).__name__}")
    return made
