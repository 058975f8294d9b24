"""Who asks: what group state remembers of a request's origin."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Client(NamedTuple):
    version: int
    client_id: str = ""
    host: str = ""
    # Which topics it may know of, where an authorizer says so.
    may_describe: Callable[[str], bool] | None = None
