"""Requests with thousands of offsets of a group, some hundred at a time.

A commit is one batch of records and one change of the group's state, which nobody can interrupt. So one that names more
is carried out as if its client had sent several: all of them are answered together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from typing import Any

from ottla.common.steps import Steps

OFFSETS_AT_ONCE = 250


def answered_in_pieces(request: Any, work: Callable[[Any], Steps[Any]]) -> Steps[Any]:
    """What `work` answers to the request, or if that is large, to several for some of its partitions each."""
    if max(len(request.topics), sum(len(topic.partitions) for topic in request.topics)) <= OFFSETS_AT_ONCE:
        return (yield from work(request))
    answer: Any = None
    topics: dict[int, Any] = {}
    for piece in _pieces(request):
        part = copy(request)
        part.topics = [topic for _, topic in piece]
        answer = yield from work(part)
        for (place, _), topic in zip(piece, answer.topics, strict=True):
            if place in topics:
                topics[place].partitions += topic.partitions
            else:
                topics[place] = topic
        yield None
    answer.topics = list(topics.values())
    return answer


def _pieces(request: Any) -> Iterator[list[tuple[int, Any]]]:
    """Lists of a topic's place in the request, and the topic with some of its partitions."""
    piece: list[tuple[int, Any]] = []
    room = OFFSETS_AT_ONCE
    for place, topic in enumerate(request.topics):
        at = 0
        while True:
            some = copy(topic)
            some.partitions = topic.partitions[at : at + room]
            piece.append((place, some))
            at += len(some.partitions)
            room -= max(1, len(some.partitions))
            if room == 0:
                yield piece
                piece, room = [], OFFSETS_AT_ONCE
            if at >= len(topic.partitions):
                break
    if piece:
        yield piece
