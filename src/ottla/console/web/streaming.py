"""Searches that go on in a thread while their page is told of them by server-sent events.

So many run at a time, and none for longer than it may. The thread waits when nobody takes what it says, and is told
when nobody will: a browser that goes away cancels its search.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

from starlette.responses import Response, StreamingResponse

from ottla.client.retrying import as_sentence
from ottla.common.errors import OttlaError

SEARCH_S_MAX = 20.0
SEARCHES_MAX = 8
_EVENTS_WAITING_MAX = 32

# Of records, of traces, and downloads: over all visitors.
searches = threading.BoundedSemaphore(SEARCHES_MAX)
Emit = Callable[[str, Any], None]
Work = Callable[[Emit, Callable[[], bool]], None]


def streamed(work: Work, slots: threading.BoundedSemaphore) -> Response:
    """`work` is told how to emit an event (its kind, and text or what becomes JSON), and whether it was cancelled. That
    it cannot be done is the event `trouble`."""
    return StreamingResponse(_events(work, slots), media_type="text/event-stream", headers={"x-accel-buffering": "no"})


async def _events(work: Work, slots: threading.BoundedSemaphore) -> AsyncIterator[bytes]:
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[tuple[str, Any] | None] = asyncio.Queue()
    room, cancelled = threading.Semaphore(_EVENTS_WAITING_MAX), threading.Event()

    def emit(kind: str, data: Any) -> None:
        while not room.acquire(timeout=0.5):
            if cancelled.is_set():
                return
        loop.call_soon_threadsafe(queue.put_nowait, (kind, data))

    def run() -> None:
        try:
            if not slots.acquire(blocking=False):
                raise OttlaError("too many searches are under way already: wait for one, or cancel it.")
            try:
                work(emit, cancelled.is_set)
            finally:
                slots.release()
        except (OttlaError, OSError) as error:
            emit("trouble", {"sentence": str(as_sentence(error))})
        except Exception as error:
            emit("trouble", {"sentence": f"the search failed: {error}."})
            raise
        finally:
            loop.call_soon_threadsafe(queue.put_nowait, None)

    thread = threading.Thread(target=run, name="console-search", daemon=True)
    thread.start()
    try:
        while True:
            try:
                event = await asyncio.wait_for(queue.get(), 10)
            except TimeoutError:
                yield b": still here\n\n"
                continue
            if event is None:
                return
            room.release()
            kind, data = event
            text = data if isinstance(data, str) else json.dumps(data)
            # A carriage return would end a line of the event, too.
            lines = "".join(f"data: {line}\n" for line in text.replace("\r", "").split("\n"))
            yield f"event: {kind}\n{lines}\n".encode(errors="replace")
    finally:
        cancelled.set()
