"""Keeps the image in step with the store: nodes that have changed are read again, many at a time."""

from __future__ import annotations

import asyncio
import logging

from ottla.broker.chores.timers import Timers
from ottla.broker.controller.metadata_changes import MetadataChanges
from ottla.common.errors import ApiError
from ottla.common.repeated import Repeated
from ottla.metastore.port import MetadataStore
from ottla.metastore.stored_image import is_of_image

log = logging.getLogger("ottla.cluster")

_WHOLE = "/"
_RETRY_MS = 250


class StoreWatch:
    def __init__(self, store: MetadataStore, metadata: MetadataChanges, timers: Timers) -> None:
        self._metadata = metadata
        self._timers = timers
        self._loop = asyncio.get_running_loop()
        self._changed: dict[str, None] = {}
        self._reading: asyncio.Task[None] | None = None
        self._troubles = Repeated()
        self._is_closed = False
        self._cancel = store.watch(_WHOLE, self._on_change)

    def close(self) -> None:
        self._is_closed = True
        self._cancel()
        if self._reading is not None:
            self._reading.cancel()

    async def settled(self) -> None:
        """All that the store has told of by now is in the image."""
        await asyncio.sleep(0)  # it comes from another thread
        while self._reading is not None:
            await asyncio.wait([self._reading])

    def _on_change(self, path: str) -> None:
        """On a thread of the store."""
        if path == _WHOLE or is_of_image(path):
            self._loop.call_soon_threadsafe(self._note, path)

    def _note(self, path: str) -> None:
        self._changed[path] = None
        if self._reading is None and not self._is_closed:
            self._reading = self._loop.create_task(self._read())

    async def _read(self) -> None:
        try:
            while self._changed:
                changed, self._changed = self._changed, {}
                try:
                    # After a lost connection nobody knows what has changed.
                    await self._metadata.refresh(None if _WHOLE in changed else changed)
                    self._troubles.is_over()
                except ApiError as error:
                    if self._troubles.is_news(str(error)):
                        log.warning("the metadata store cannot be read, will try again", extra={"why": str(error)})
                    self._changed = {**changed, **self._changed}
                    await self._timers.sleep(_RETRY_MS)
                except Exception as error:
                    if self._troubles.is_news(repr(error)):
                        log.exception("reading what has changed in the metadata store failed, will try again")
                    self._changed = {_WHOLE: None}
                    await self._timers.sleep(_RETRY_MS)
        finally:
            self._reading = None
