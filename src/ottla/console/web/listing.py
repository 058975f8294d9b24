"""Lists on pages: filtered, sorted, cut into pages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from starlette.requests import Request

from ottla.console.web.requests import positive

T = TypeVar("T")

PER_PAGE = 50
_PAGES_MAX = 100_000


@dataclass(frozen=True)
class Listing(Generic[T]):
    rows: list[T]
    total: int
    page: int
    pages: int
    sort: str
    filter: str

    @property
    def first(self) -> int:
        return (self.page - 1) * PER_PAGE + 1 if self.total else 0

    @property
    def last(self) -> int:
        return min(self.total, self.page * PER_PAGE)


def listing(
    request: Request,
    rows: Iterable[T],
    name_of: Callable[[T], str],
    orders: Mapping[str, Callable[[T], Any]],
    default: str,
) -> Listing[T]:
    """`q` of the query is a part of the name, `sort` an order (`-` before it: the other way round), `page` a number."""
    wanted = request.query_params.get("q", "").strip()
    sort = request.query_params.get("sort", default)
    if sort.lstrip("-") not in orders:
        sort = default
    kept = [row for row in rows if wanted.lower() in name_of(row).lower()]
    # What is not known comes last, whichever way it is sorted.
    key = orders[sort.lstrip("-")]
    known = sorted((row for row in kept if key(row) is not None), key=key, reverse=sort.startswith("-"))
    kept = known + [row for row in kept if key(row) is None]
    pages = max(1, -(-len(kept) // PER_PAGE))
    page = min(pages, positive(request, "page", 1, _PAGES_MAX))
    return Listing(kept[(page - 1) * PER_PAGE : page * PER_PAGE], len(kept), page, pages, sort, wanted)
