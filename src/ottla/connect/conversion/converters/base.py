"""What a converter is: bytes of records to columns of a schema, and back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa

from ottla.connect.api.config import ConfigDef
from ottla.connect.api.data import Column, Schema
from ottla.connect.conversion.arrow import from_python, to_python
from ottla.connect.conversion.errors import DataError

# Which of the values that were given, and what is wrong with it.
OnFailure = Callable[[int, Exception], None]


@dataclass(frozen=True)
class Piece:
    """Values of one schema, and which of those that were given they are; None: all of them."""

    column: Column
    at: Any | None = None


class Converter(ABC):
    # Kafka's name of the class; what dead letters name.
    class_name: ClassVar[str]
    config_def: ClassVar[ConfigDef] = ConfigDef()

    def __init__(self, settings: Mapping[str, Any], *, is_key: bool) -> None:
        """`settings`: parsed by `config_def`."""
        self.is_key = is_key

    @abstractmethod
    def decode(self, topics: Any, data: Any, on_failure: OnFailure) -> list[Piece]:
        """`data`: binary. What fails is told and left out."""

    @abstractmethod
    def encode(self, topics: Any, column: Column, on_failure: OnFailure) -> Any:
        """Binary, as long as the column: null where it failed."""

    def decode_header(self, topic: str, name: str, data: bytes | None) -> tuple[Schema | None, Any]:
        """Raises RecordError."""
        [piece] = self.decode(pa.array([topic]), pa.array([data], pa.binary()), _raised)
        return piece.column.schema, to_python(piece.column)[0]

    def encode_header(self, topic: str, name: str, schema: Schema | None, value: Any) -> bytes | None:
        encoded: bytes | None = self.encode(pa.array([topic]), from_python(schema, [value]), _raised)[0].as_py()
        return encoded


def _raised(_: int, error: Exception) -> None:
    raise error


def pieces_of(
    found: dict[Schema | None, tuple[list[int], list[Any]]], count: int, on_failure: OnFailure
) -> list[Piece]:
    """Python values by their schemas to columns: a value that does not fit its column fails alone."""
    pieces = []
    for schema, (at, values) in found.items():
        try:
            column = from_python(schema, values)
        except DataError:
            good = [place for place, value in enumerate(values) if _fits(schema, value, at[place], on_failure)]
            at, values = [at[place] for place in good], [values[place] for place in good]
            column = from_python(schema, values)
        if at:
            pieces.append(Piece(column, None if at == list(range(count)) else pa.array(at, pa.int64())))
    return pieces


def _fits(schema: Schema | None, value: Any, at: int, on_failure: OnFailure) -> bool:
    try:
        from_python(schema, [value])
    except DataError as error:
        on_failure(at, error)
        return False
    return True
