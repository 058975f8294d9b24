"""What a log asks of whoever keeps it. `LogOwner` itself serves a log that stands alone, as in tools and tests."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from ottla.storage.flushing.flusher import Flusher

if TYPE_CHECKING:
    from ottla.storage.log_writer import LogWriter


class LogOwner:
    # None: a flush is done at once, in the caller's thread.
    flusher: Flusher | None = None

    def disk_failed(self, log: LogWriter, error: OSError) -> None:
        """A write or sync failed in a way that leaves the state of the files unknown."""
        log.fail(f"{log.dir} failed: {error.strerror}")

    def disk_refused(self, log: LogWriter, error: OSError) -> None:
        """A request failed for want of something that may be there again: room, file descriptors."""

    def checkpoint_cleaned(self, log: LogWriter) -> None:
        """`log.cleaned_offset` changed."""

    def delete_later(self, paths: Iterable[Path], delay_ms: int) -> None:
        """These files carry the deleted suffix; remove them once nobody may be reading any more."""
        for path in paths:
            path.unlink(missing_ok=True)
