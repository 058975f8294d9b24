"""What a log directory refuses for the time being: no room is left in it, or the process has no file descriptors.

Both pass, so the directory stays in use and every request that fails gets its error. The operator is told once when it
begins, with the path and what to do, and once when it is over, however many requests fail meanwhile. It is over when
nothing was refused for a while and a try at the same thing succeeds.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import resource
from dataclasses import dataclass
from pathlib import Path

logger = logging.getLogger("ottla.storage")

FULL = frozenset((errno.ENOSPC, errno.EDQUOT))
PASSING = FULL | {errno.EMFILE, errno.ENFILE, errno.ENOMEM}
_QUIET_MS = 10_000
_TRIED_BYTES_MAX = 1 << 20
_TRIAL_FILE = "__ottla_is_there_room"


@dataclass
class _Episode:
    what: str
    since_ms: int
    last_ms: int
    count: int = 1


class Refusals:
    def __init__(self, path: Path) -> None:
        self.path = path
        # By what is lacking: the errno, with one for both ways to be full.
        self._episodes: dict[int, _Episode] = {}

    @property
    def current(self) -> str | None:
        """What is lacking now, in a few words; None while nothing is."""
        return next((episode.what for episode in list(self._episodes.values())), None)

    @property
    def is_full(self) -> bool:
        return errno.ENOSPC in self._episodes

    def note(self, error: OSError, now_ms: int) -> None:
        """A request failed with one of PASSING; `now_ms` is monotonic."""
        lacking = errno.ENOSPC if error.errno in FULL else error.errno or 0
        episode = self._episodes.get(lacking)
        if episode is not None:
            episode.last_ms = now_ms
            episode.count += 1
            return
        what, advice = _explain(error)
        self._episodes[lacking] = _Episode(what, now_ms, now_ms)
        logger.error("%s: %s, so requests that need more are refused; %s", self.path, what, advice)

    def tick(self, now_ms: int) -> None:
        """Now and then: see what is over."""
        for lacking, episode in list(self._episodes.items()):
            if now_ms - episode.last_ms >= _QUIET_MS and self._is_over(lacking):
                del self._episodes[lacking]
                seconds = (now_ms - episode.since_ms) // 1000
                logger.info("%s works again; refused %d times in %d seconds", self.path, episode.count, seconds)

    def _is_over(self, lacking: int) -> bool:
        trial = self.path / _TRIAL_FILE
        try:
            fd = os.open(trial, os.O_WRONLY | os.O_CREAT, 0o644)
            try:
                if lacking == errno.ENOSPC:
                    os.posix_fallocate(fd, 0, tried_bytes(self.path))
            finally:
                os.close(fd)
        except OSError:
            return False
        finally:
            with contextlib.suppress(OSError):
                trial.unlink(missing_ok=True)
        return True


def tried_bytes(path: Path) -> int:
    """A mebibyte, less on a small file system."""
    found = os.statvfs(path)
    return min(_TRIED_BYTES_MAX, max(4096, found.f_blocks * found.f_frsize // 64))


def _explain(error: OSError) -> tuple[str, str]:
    if error.errno in FULL:
        what = "no room is left on this file system" if error.errno == errno.ENOSPC else "the disk quota is used up"
        return what, "delete topics or records, lower retention, or make the file system larger"
    if error.errno == errno.EMFILE:
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        return (
            f"all {limit} file descriptors are in use",
            "raise the limit of open files (ulimit -n, LimitNOFILE= of a systemd unit) or close connections",
        )
    if error.errno == errno.ENFILE:
        return "this machine has no file descriptors left", "raise the sysctl fs.file-max"
    return f"{error.strerror}", "give this machine more memory"
