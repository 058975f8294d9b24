"""A topic's records: searched, tailed, looked at one by one, downloaded, produced.

The page is a form; what it finds comes as server-sent events, rendered here, while the search goes on in a thread. A
browser that goes away cancels it.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
from collections.abc import AsyncIterator, Callable, Generator
from dataclasses import replace
from typing import Any
from urllib.parse import quote, urlencode

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from ottla.client.lookup import ClusterReader
from ottla.client.retrying import as_sentence
from ottla.common.errors import OttlaError
from ottla.common.where import Record
from ottla.console.pages.topics import topic_of
from ottla.console.records.producing import produce
from ottla.console.records.query import DOWNLOAD_MAX, FORMATS, LIMITS, NEXT, OFFSET, Query, parse_query, positions_text
from ottla.console.records.searching import Progress, Search, View, condition_of
from ottla.console.records.showing import as_line, shown, view_of
from ottla.console.web.console import Console, Visitor, console_of
from ottla.console.web.handling import Done, NotFound, change, page
from ottla.console.web.requests import Form
from ottla.console.web.routing import Route
from ottla.console.web.streaming import SEARCH_S_MAX, Emit, searches, streamed

DOWNLOAD_S_MAX = 300.0
TAIL_S_MAX = 3600.0
TAILS_MAX = 32
_SLOT_S_MAX = 60.0
_SLOT_PAUSE_S = 0.2
_TAIL_PAUSE_S = 0.4
_TAIL_ROWS_MAX = 100

# They take next to nothing, and go on for long.
_tails = threading.BoundedSemaphore(TAILS_MAX)


def records(console: Console, request: Request) -> Response:
    found = topic_of(console, request)
    problem = None
    try:
        condition_of(parse_query(found.name, request.query_params))
    except OttlaError as error:
        problem = str(error)
    visitor = console.visitor(request)
    query = {name: value for name, value in request.query_params.items() if value}
    return console.page(
        request,
        "records.html",
        topic=found,
        tab="records",
        problem_of_query=problem,
        given=query,
        stream=f"/topics/{quote(found.name, safe='')}/records/stream?{urlencode(query)}",
        download=f"/topics/{quote(found.name, safe='')}/records.ndjson?{urlencode(query | {'limit': DOWNLOAD_MAX})}",
        limits=LIMITS,
        formats=FORMATS,
        masks=[".".join(path) for path in console.masks.of(found.name)] if not console.may_unmask(visitor) else [],
    )


def _view(console: Console, visitor: Visitor, query: Query) -> View | None:
    paths = () if console.may_unmask(visitor) else console.masks.of(query.topic)
    return view_of(console.registry, paths, with_registry=query.format in ("auto", "registry", "json"))


def _reader(console: Console, visitor: Visitor, query: Query) -> ClusterReader:
    settings = console.link_of(visitor).settings
    return ClusterReader(replace(settings, is_committed_only=query.is_committed_only))


# --- server-sent events


async def stream(request: Request) -> Response:
    console = console_of(request)
    visitor = console.visitor(request)
    topic = request.path_params["topic"]
    is_tail = request.query_params.get("tail") == "1"

    def work(emit: Emit, is_cancelled: Callable[[], bool]) -> None:
        query = parse_query(topic, request.query_params)
        with _reader(console, visitor, query) as reader:
            run = _tail if is_tail else _search
            run(console, reader, query, _view(console, visitor, query), emit, is_cancelled)

    return streamed(work, _tails if is_tail else searches)


def _search(
    console: Console,
    reader: ClusterReader,
    query: Query,
    view: View | None,
    emit: Emit,
    is_cancelled: Callable[[], bool],
) -> None:
    search = Search(reader, query, view, seconds_max=SEARCH_S_MAX, is_cancelled=is_cancelled)
    for found in search.rounds():
        if found:
            emit("rows", console.fragment("_rows.html", records=[shown(record, query.format) for record in found]))
        emit("progress", _told(search.progress, query))
    emit("done", _told(search.progress, query))


def _tail(
    console: Console,
    reader: ClusterReader,
    query: Query,
    view: View | None,
    emit: Emit,
    is_cancelled: Callable[[], bool],
) -> None:
    """From the ends on, until nobody looks any more."""
    first = Search(reader, replace(query, origin="end", limit=1), view, seconds_max=1)
    positions = {number: end for number, (_, end) in first.bounds().items()}
    total, until = Progress(), time.monotonic() + TAIL_S_MAX
    emit("progress", _told(total, query))
    while not is_cancelled() and time.monotonic() < until:
        turn = replace(
            query,
            origin=NEXT,
            positions=tuple(positions.items()),
            is_backwards=False,
            limit=_TAIL_ROWS_MAX,
            partitions=None,
        )
        search = Search(reader, turn, view, seconds_max=5, is_cancelled=is_cancelled)
        found = [record for some in search.rounds() for record in some]
        positions |= search.progress.positions
        total.records += search.progress.records
        total.bytes += search.progress.bytes
        total.matches += len(found)
        if found:
            rows = [shown(record, query.format) for record in reversed(found)]
            emit("rows", console.fragment("_rows.html", records=rows))
        emit("progress", _told(total, query))
        if len(found) < _TAIL_ROWS_MAX:
            time.sleep(_TAIL_PAUSE_S)
    emit("done", _told(total, query))


def _told(progress: Progress, query: Query) -> dict[str, Any]:
    following = {
        "from": NEXT,
        "positions": positions_text(progress.positions),
        "back": "1" if query.is_backwards else "",
        "partition": ",".join(map(str, query.partitions or ())),
        "where": query.where,
        "text": query.text,
        "limit": str(query.limit),
        "as": query.format,
        "isolation": "" if query.is_committed_only else "all",
    }
    return {
        "records": progress.records,
        "bytes": progress.bytes,
        "total": progress.total,
        "searched": progress.searched,
        "matches": progress.matches,
        "seconds": round(progress.seconds, 2),
        "ended": progress.ended,
        "notices": progress.notices[:5],
        "next": urlencode({name: value for name, value in following.items() if value}),
    }


# --- download


async def _has_slot() -> bool:
    """Waits for a while. Not in a thread: there are few of them, and every page takes one."""
    deadline = time.monotonic() + _SLOT_S_MAX
    while not searches.acquire(blocking=False):
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(_SLOT_PAUSE_S)
    return True


async def download(request: Request) -> Response:
    console = console_of(request)
    visitor = console.visitor(request)
    topic = request.path_params["topic"]
    try:
        query = parse_query(topic, request.query_params, limit_max=DOWNLOAD_MAX)
        condition_of(query)
    except OttlaError as error:
        return console.page(request, "trouble.html", 400, title="That cannot be read", sentence=str(error))
    cancelled = threading.Event()

    def found_lines() -> Generator[bytes, None, None]:
        with _reader(console, visitor, query) as reader:
            search = Search(
                reader, query, _view(console, visitor, query), seconds_max=DOWNLOAD_S_MAX, is_cancelled=cancelled.is_set
            )
            for found in search.rounds():
                yield b"".join(as_line(record) + b"\n" for record in found)

    async def body() -> AsyncIterator[bytes]:
        if not await _has_slot():
            yield b'{"error": "too many searches are under way: try again"}\n'
            return
        source = found_lines()
        try:
            while (piece := await run_in_threadpool(next, source, None)) is not None:
                yield piece
        except (OttlaError, OSError) as error:
            yield json.dumps({"error": str(as_sentence(error))}).encode() + b"\n"
        finally:
            cancelled.set()
            source.close()
            searches.release()

    safe = re.sub(r"[^a-zA-Z0-9._-]", "_", topic)
    return StreamingResponse(
        body(),
        media_type="application/x-ndjson",
        headers={"content-disposition": f'attachment; filename="{safe}.ndjson"'},
    )


# --- one record


def record(console: Console, request: Request) -> Response:
    found = topic_of(console, request)
    number, offset = request.path_params["partition"], request.path_params["offset"]
    visitor = console.visitor(request)
    query = Query(
        found.name, OFFSET, offset, partitions=(number,), is_backwards=False, limit=1, is_committed_only=False
    )
    how = request.query_params.get("as", "auto")
    query = replace(query, format=how if how in FORMATS else "auto")
    one: Record | None = None
    with _reader(console, visitor, query) as reader:
        search = Search(reader, query, _view(console, visitor, query), seconds_max=SEARCH_S_MAX)
        for some in search.rounds():
            one = some[0] if some else None
            break
    if one is None or one.offset != offset:
        raise NotFound(
            f"There is no record at offset {offset} of {found.name}-{number}: it was deleted, compacted away, is a "
            "marker of a transaction, or is not written yet."
        )
    return console.page(
        request, "record.html", topic=found, tab="records", record=shown(one, query.format), formats=FORMATS
    )


# --- produce


def produce_page(console: Console, request: Request) -> Response:
    return console.page(request, "produce.html", topic=topic_of(console, request), tab="produce")


def send(console: Console, visitor: Visitor, form: Form, request: Request) -> Done:
    found = topic_of(console, request)
    client = visitor.session.client or dict(console.settings.client)
    where = produce(console.settings.bootstrap, client, found.name, form, console.registry)
    partition, offset = where
    return Done(
        f"The record is in {found.name}-{partition} at offset {offset}.",
        f"/topics/{quote(found.name, safe='')}/records/{partition}/{offset}",
    )


routes = [
    Route("/topics/{topic}/records", page(records)),
    Route("/topics/{topic}/records/stream", stream),
    Route("/topics/{topic}/records.ndjson", download),
    Route("/topics/{topic}/records/{partition:int}/{offset:int}", page(record)),
    Route("/topics/{topic}/produce", page(produce_page)),
    Route("/topics/{topic}/produce", change("produce records", send), methods=["POST"]),
]
