"""What goes wrong with a record, told with where it is from and where the user's code failed."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import Any

from ottla.common.errors import OttlaError
from ottla.streams.record import RecordMetadata


class OnError(Enum):
    """What becomes of a record that cannot be read, for which a function raises, or that cannot be written."""

    FAIL = "fail"
    # Logged, counted, and gone.
    CONTINUE = "continue"
    # To the dead-letter topic, as it came, with headers that say why.
    DEAD_LETTER = "dead-letter"


@dataclass(frozen=True)
class ErrorHandling:
    deserialization: OnError = OnError.FAIL
    processing: OnError = OnError.FAIL
    dead_letter_topic: str | None = None
    # What a sink cannot write: no bytes can be made of it, its topic is not there, or it is too large for the topic.
    production: OnError = OnError.FAIL

    def __post_init__(self) -> None:
        chosen = (self.deserialization, self.processing, self.production)
        if OnError.DEAD_LETTER in chosen and not self.dead_letter_topic:
            raise OttlaError("dead letters need a `dead_letter_topic`.")


DEFAULT_HANDLING = ErrorHandling()


class RecordFailed(OttlaError):
    """A record could not be processed."""


class BatchFailed(RecordFailed):
    """Of several records at once: there is no one record that could be left out, so it always ends the batch."""


class NotWritten(RecordFailed):
    """A sink could not write a record. Nobody but the handler of production errors decides about it."""


def where(metadata: RecordMetadata | None) -> str:
    if metadata is None:
        return "a timer"
    return f"the record {metadata.topic}-{metadata.partition}@{metadata.offset}"


def undecodable(metadata: RecordMetadata, part: str, error: Exception) -> str:
    return f"{where(metadata)} has a {part} that cannot be read: {_said(error)}"


def not_written(metadata: RecordMetadata | None, node: str, topic: str, why: Exception | str) -> str:
    said = why if isinstance(why, str) else _said(why)
    return f"{where(metadata)}: what comes of it cannot be written to '{topic}' in node {node}: {said}"


def failed(metadata: RecordMetadata | None, error: Exception) -> str:
    """With the node, and the last line of code that is not ours."""
    if isinstance(error, RecordFailed):
        return str(error).rstrip(".")
    node, line = _place(error.__traceback__)
    at = f" in node {node}" if node else ""
    by = f" ({line})" if line else ""
    return f"{where(metadata)} cannot be processed{at}: {_said(error)}{by}"


def _said(error: Exception) -> str:
    text = str(error).rstrip(".")
    return (
        text if isinstance(error, OttlaError) else f"{type(error).__name__}: {text}" if text else type(error).__name__
    )


_OURS = str(Path(__file__).parent)


def _place(trace: TracebackType | None) -> tuple[str | None, str | None]:
    node: str | None = None
    line: str | None = None
    for frame, number in traceback.walk_tb(trace):
        if frame.f_code.co_filename.startswith(_OURS):
            owner: Any = frame.f_locals.get("self")
            node = getattr(owner, "node_name", node)
        else:
            line = f"{Path(frame.f_code.co_filename).name}, line {number}"
    return node, line
