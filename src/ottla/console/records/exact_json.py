"""JSON that is shown as it was written: Python's floats would make 0.10 of 0.1, and another number of one with more
digits than they have.

A number that a float does not hold as it is written goes through the tree as a text that nobody can guess, and is put
back where that stands.
"""

from __future__ import annotations

import json
import re
import secrets
from typing import Any

_MARK = f"number:{secrets.token_hex(8)}:"
_MARKED = re.compile(f'"{_MARK}([^"]*)"')


def loads(data: bytes | str) -> Any:
    """For `dumps` only. Raises ValueError, RecursionError."""
    return json.loads(data, parse_float=_number)


def dumps(tree: Any, **how: Any) -> str:
    return _MARKED.sub(r"\1", json.dumps(tree, **how))


def _number(text: str) -> float | str:
    value = float(text)
    return value if repr(value) == text else _MARK + text
