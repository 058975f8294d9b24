"""The twin of `json_encode.pyx`, which says what it is for: to this one nothing is plain, so all is left to Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from ottla.kernel.json_steps import JsonWriteStep


class JsonEncoder:
    def __init__(self, steps: Sequence[JsonWriteStep], edges: Sequence[int], constants: bytes) -> None:
        pass

    def encode(self, rows: Any, head: bytes) -> tuple[Any, list[int]]:
        """A value for each row, null for those that are null, and the rows that are left to others."""
        left = [row for row, is_there in enumerate(rows.is_valid().to_pylist()) if is_there]
        return pa.nulls(len(rows), pa.binary()), left
