"""Where files are: a path or the URI of a store, as PyArrow's file systems take it."""

from __future__ import annotations

import logging
import posixpath
import re
import time
from typing import Any, NamedTuple

from pyarrow import fs

from ottla.connect.api import ConnectorFailure, Outage

_LOG = logging.getLogger("ottla.connect.files")


class Found(NamedTuple):
    path: str
    size: int


class Place:
    """A folder. The file system is opened when it is first needed."""

    def __init__(self, uri: str) -> None:
        self._uri = uri
        self._opened: tuple[Any, str] | None = None

    def _open(self) -> tuple[Any, str]:
        if self._opened is None:
            try:
                if "://" in self._uri:
                    self._opened = fs.FileSystem.from_uri(self._uri)
                else:
                    self._opened = fs.LocalFileSystem(), self._uri
            except (OSError, ValueError, ImportError) as error:
                raise ConnectorFailure(f"'{self._uri}' is no place for files: {error}") from None
        return self._opened

    @property
    def system(self) -> Any:
        return self._open()[0]

    @property
    def path(self) -> str:
        return str(self._open()[1]).rstrip("/")

    @property
    def is_local(self) -> bool:
        return isinstance(self.system, fs.LocalFileSystem)

    def listed(self, below: str = "", *, hidden: bool = False) -> list[Found]:
        """Files of this folder and those in it, by name; none if there is no such folder. What begins with a dot or an
        underscore belongs to whoever is writing there, and is `hidden`. Raises Outage."""
        base = posixpath.join(self.path, below) if below else self.path
        try:
            infos = self.system.get_file_info(fs.FileSelector(base, allow_not_found=True, recursive=True))
        except OSError as error:
            raise Outage(f"{base} cannot be listed: {error}") from None
        found = [
            Found(info.path, info.size)
            for info in infos
            if info.type == fs.FileType.File and (hidden or not info.base_name.startswith((".", "_")))
        ]
        return sorted(found)

    def age_s(self, path: str) -> float:
        """Since somebody has written to it; for ever, where that is not known. Raises OSError."""
        written_ns = self.system.get_file_info(path).mtime_ns
        return float("inf") if written_ns is None else (time.time_ns() - written_ns) / 1e9

    def remove_old(self, pattern: re.Pattern[str], age_s: float) -> None:
        """Files of such names that nobody has written to for so long. That they cannot be removed is no trouble now."""
        try:
            infos = self.system.get_file_info(fs.FileSelector(self.path, allow_not_found=True, recursive=True))
            for info in infos:
                age_ns = time.time_ns() - (info.mtime_ns or time.time_ns())
                if pattern.fullmatch(info.base_name) and age_ns > age_s * 1e9:
                    self.system.delete_file(info.path)
        except OSError as error:
            _LOG.warning("leftovers in %s cannot be removed: %s", self.path, error)
