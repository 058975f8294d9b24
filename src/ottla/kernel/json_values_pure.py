"""The twin of `json_values.pyx`, which says what it is for: to this one nothing is plain, so all is left to Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from ottla.kernel.avro_steps import ColumnShape
from ottla.kernel.json_steps import JsonNode


class JsonDecoder:
    def __init__(
        self,
        columns: Sequence[ColumnShape],
        kind: Any,
        steps: Sequence[JsonNode],
        edges: Sequence[int],
        constants: bytes,
        has_head: bool = True,
    ) -> None:
        self._type = kind

    def decode(self, values: Any) -> tuple[Any, list[int]]:
        """A struct for each value, null for those that are null, and the rows that are left to others."""
        rows = [row for row, is_there in enumerate(values.is_valid().to_pylist()) if is_there]
        return pa.nulls(len(values), self._type), rows
