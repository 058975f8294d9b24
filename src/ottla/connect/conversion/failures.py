"""A record that failed on its way, and the dead letter that tells of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from ottla.connect.api.plugins import ConnectorFailure


class Stage(StrEnum):
    """Kafka Connect's names."""

    KEY_CONVERTER = "KEY_CONVERTER"
    VALUE_CONVERTER = "VALUE_CONVERTER"
    HEADER_CONVERTER = "HEADER_CONVERTER"
    TRANSFORMATION = "TRANSFORMATION"


class ConversionFailed(ConnectorFailure):
    """A record failed, and errors.tolerance is none."""


@dataclass(frozen=True)
class Failed:
    """With the bytes that came: of a source's record there are none, and no offset."""

    topic: str
    partition: int | None
    offset: int | None
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]
    stage: str
    class_name: str
    error: str
    exception_class: str
    trace: str

    def sentence(self) -> str:
        where = f"the topic '{self.topic}'"
        if self.partition is not None:
            where = f"{where}, partition {self.partition}"
        if self.offset is not None:
            where = f"{where}, offset {self.offset}"
        return (
            f"a record of {where} fails in {self.stage} ({self.class_name}): {self.error.rstrip('.')}. Mend what "
            "writes it, or set errors.tolerance=all to pass over such records."
        )


_PREFIX = "__connect.errors."


def dead_letter_headers(failed: Failed, connector: str, task: int | str) -> list[tuple[str, bytes]]:
    """Kafka Connect's, in its order."""
    found: list[tuple[str, str | None]] = [
        ("topic", failed.topic),
        ("partition", None if failed.partition is None else str(failed.partition)),
        ("offset", None if failed.offset is None else str(failed.offset)),
        ("connector.name", connector),
        ("task.id", str(task)),
        ("stage", failed.stage),
        ("class.name", failed.class_name),
        ("exception.class.name", failed.exception_class),
        ("exception.message", failed.error),
        ("exception.stacktrace", failed.trace),
    ]
    return [(_PREFIX + name, value.encode(errors="replace")) for name, value in found if value is not None]
