"""A disk that knows what a power cut would leave: contents as of their last fsync, names as of their directory's.

Whatever was not synced may have reached the platter or not, in part or as zeros; an image decides that by a seed, as
badly as a file system may: a name without its content, a rename that did not happen, a tail cut anywhere. It needs no
root, and runs thousands of cuts in the time that a real device takes for ten. The metadata database, which syncs by
itself, is taken as it is; the tests on loop devices cover that part.
"""

from __future__ import annotations

import errno
import os
import random
import shutil
import stat
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ottla.storage.disk import Disk, OpenFile

Inode = tuple[int, int]


class SyncedOnly(random.Random):
    """Takes the worst of what a cut may leave: nothing but what was synced."""

    def choice(self, seq: Any) -> Any:
        return seq[1]

    def randrange(self, *_: Any) -> int:
        return 0


class DurableDisk(Disk):
    def __init__(self, root: Path, *, forgets_suffix: str | None = None) -> None:
        self.root = root
        # As we name files, and as the kernel names those that are open.
        self._prefixes = (f"{root}/", f"{os.path.realpath(root)}/")
        self.syncs = 0
        # How many bytes can still be written; None: enough.
        self.room: int | None = None
        # Broken on purpose: files of this kind are not synced though asked for.
        self._forgets_suffix = forgets_suffix
        self._lock = threading.Lock()
        self._synced: dict[Inode, bytes] = {}
        self._names: dict[str, Inode] = {}
        # An inode number is used again once its file is gone: hold every file that we know, so that none is.
        self._held: dict[Inode, OpenFile] = {}

    # --- the port

    def open(self, path: str | Path, flags: int) -> OpenFile:
        file = super().open(path, flags)
        self._hold(file.fd)
        return file

    def pwrite(self, fd: int, data: Any, position: int) -> int:
        return os.pwrite(fd, data if self.room is None else self._what_fits(data), position)

    def pwritev(self, fd: int, buffers: Sequence[Any], position: int) -> int:
        if self.room is None:
            return os.pwritev(fd, buffers, position)
        return os.pwrite(fd, self._what_fits(b"".join(buffers)), position)

    def _what_fits(self, data: Any) -> memoryview:
        """A file system that fills up writes short first, and then refuses."""
        assert self.room is not None
        if self.room == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        fitting = memoryview(data).cast("B")[: self.room]
        self.room -= len(fitting)
        return fitting

    def fsync(self, fd: int) -> None:
        # What is in the file when we are asked is durable when we return.
        status = os.fstat(fd)
        path = os.readlink(f"/proc/self/fd/{fd}")
        if self._forgets_suffix is not None and path.endswith(self._forgets_suffix):
            return
        if stat.S_ISDIR(status.st_mode):
            self._sync_names(Path(path))
        else:
            content = _content(self._hold(fd).fd)
            with self._lock:
                self._synced[status.st_dev, status.st_ino] = content
                # As on ext4, a file that was synced can be found under its name.
                self._names[self._relative(path)] = (status.st_dev, status.st_ino)
        self.syncs += 1

    def _hold(self, fd: int) -> OpenFile:
        """The same file for reading, whatever it was opened for."""
        status = os.fstat(fd)
        inode = (status.st_dev, status.st_ino)
        with self._lock:
            if inode not in self._held:
                self._held[inode] = OpenFile(os.open(f"/proc/self/fd/{fd}", os.O_RDONLY))
            return self._held[inode]

    def _sync_names(self, folder: Path) -> None:
        # A folder is on one device: no file has to be asked.
        device = os.stat(folder).st_dev
        prefix = self._relative(folder) + "/" if folder != self.root else ""
        found = {prefix + entry.name: (device, entry.inode()) for entry in os.scandir(folder) if entry.is_file()}
        with self._lock:
            gone = [
                one
                for one in self._names
                if one not in found and one.startswith(prefix) and "/" not in one[len(prefix) :]
            ]
            for one in gone:
                del self._names[one]
            self._names.update(found)

    def _relative(self, path: str | Path) -> str:
        text = str(path).removesuffix(" (deleted)")
        for prefix in self._prefixes:
            if text.startswith(prefix):
                return text[len(prefix) :]
        return os.path.relpath(text, self.root)

    def take_as_synced(self) -> None:
        """What is there now has survived a cut already."""
        for folder, _, files in os.walk(self.root):
            for name in files:
                path = Path(folder) / name
                file = super().open(path, os.O_RDONLY)
                status = os.fstat(file.fd)
                inode = (status.st_dev, status.st_ino)
                self._hold(file.fd)
                self._synced[inode] = _content(file.fd)
                self._names[self._relative(path)] = inode

    # --- the cut

    def image(self, target: Path, rng: random.Random, *, keeps_order_of_names: bool = False) -> None:
        """Write to `target` what may be found after a cut at this moment. With `keeps_order_of_names` no name of a
        folder is there without those that were made before it, as on a file system with a journal."""
        is_current: dict[str, bool] = {}
        with self._lock:
            names, synced = dict(self._names), dict(self._synced)
        current: dict[str, Inode] = {}
        for folder, _, files in os.walk(self.root):
            for name in files:
                path = os.path.join(folder, name)
                try:
                    status = os.stat(path)
                except FileNotFoundError:  # renamed under our eyes
                    continue
                current[self._relative(path)] = (status.st_dev, status.st_ino)
            (target / self._relative(folder)).mkdir(parents=True, exist_ok=True)
        for name in sorted({*current, *names}):
            if "__ottla_metadata" in name:
                if name in current:
                    shutil.copyfile(self.root / name, target / name)
                continue
            if keeps_order_of_names:
                folder = _parent(name)
                if folder not in is_current:
                    is_current[folder] = rng.random() < 0.5
                inode = (current if is_current[folder] else names).get(name)
            else:
                inode = rng.choice((current.get(name), names.get(name)))
            if inode is not None and (target / name).parent.is_dir():
                (target / name).write_bytes(self._remains(inode, synced.get(inode), rng))

    def _remains(self, inode: Inode, synced: bytes | None, rng: random.Random) -> bytes:
        held = self._held.get(inode)
        latest = _content(held.fd) if held is not None else (synced or b"")
        safe = synced or b""
        choice = rng.randrange(4)
        if choice == 0 or latest == safe:
            return safe
        if choice == 1:
            return latest
        if not latest.startswith(safe):  # rewritten in place: one or the other
            return rng.choice((safe, latest))
        cut = rng.randint(len(safe), len(latest))
        return latest[:cut] if choice == 2 else latest[:cut] + bytes(len(latest) - cut)


def _content(fd: int) -> bytes:
    return os.pread(fd, os.fstat(fd).st_size, 0)


def _parent(name: str) -> str:
    return name.rpartition("/")[0]
