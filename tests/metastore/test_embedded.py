"""The embedded store passes the suite, and survives what a single file must survive."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ottla.common.errors import OttlaError
from ottla.metastore.embedded import EmbeddedStore
from ottla.metastore.port import Create, StoreUnavailable
from tests.metastore.conformance import OpenStore, StoreConformance

WRITER = """
import sys
from pathlib import Path
from ottla.metastore.embedded import EmbeddedStore
from ottla.metastore.port import Create
store = EmbeddedStore(Path(sys.argv[1]))
number = 0
while True:
    store.multi([Create(f"/{number:06}", b"x" * 100), Create(f"/{number:06}/child")])
    print(number, flush=True)
    number += 1
"""


class TestEmbedded(StoreConformance):
    @pytest.fixture
    def open_store(self, tmp_path: Path) -> OpenStore:
        return lambda: EmbeddedStore(tmp_path / "store.sqlite")


def test_every_commit_is_synced(tmp_path: Path) -> None:
    """`synchronous` 2 is FULL: a commit that was answered is on the disk, not only in the page cache."""
    store = EmbeddedStore(tmp_path / "store.sqlite")
    assert store._connection.execute("PRAGMA synchronous").fetchone() == (2,)
    store.close()


def test_what_was_acknowledged_before_kill_9_is_there(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, env=environment)
    assert writer.stdout is not None
    acknowledged = [int(writer.stdout.readline()) for _ in range(25)][-1]
    writer.send_signal(signal.SIGKILL)
    rest = writer.communicate()[0].split()
    acknowledged = max([acknowledged, *map(int, rest)])
    store = EmbeddedStore(path)
    names = store.children("/")
    assert names[: acknowledged + 1] == [f"{number:06}" for number in range(acknowledged + 1)]
    assert all(store.children(f"/{name}") == ["child"] for name in names)
    store.close()


def test_what_is_in_it_is_for_its_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        store = EmbeddedStore(tmp_path / "metadata")
        store.multi([Create("/users", b"keys")])
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir() if "metadata" in path.name}
        store.close()
    finally:
        os.umask(before)
    assert modes == {"metadata": 0o600, "metadata-wal": 0o600}


def test_a_second_opener_is_refused_with_a_sentence(tmp_path: Path) -> None:
    store = EmbeddedStore(tmp_path / "store.sqlite")
    with pytest.raises(OttlaError, match=f"{tmp_path} is in use by another broker; stop that one"):
        EmbeddedStore(tmp_path / "store.sqlite")
    store.close()


def test_a_store_that_could_not_be_opened_can_be_opened_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def scarce(*_: Any) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", scarce)
        with pytest.raises(OttlaError, match="Too many open files"):
            EmbeddedStore(tmp_path / "store")
    EmbeddedStore(tmp_path / "store").close()


def test_a_file_that_is_no_store_is_refused_with_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "store.sqlite").write_bytes(b"not a database, but long enough to look like one" * 100)
    with pytest.raises(OttlaError, match="damaged"):
        EmbeddedStore(tmp_path / "store.sqlite")


def test_a_store_of_a_newer_program_is_refused(tmp_path: Path) -> None:
    store = EmbeddedStore(tmp_path / "store.sqlite")
    store._connection.execute("PRAGMA user_version=99")
    store.close()
    with pytest.raises(OttlaError, match="newer version"):
        EmbeddedStore(tmp_path / "store.sqlite")


def test_a_closed_store_says_that_it_is_unavailable(tmp_path: Path) -> None:
    store = EmbeddedStore(tmp_path / "store.sqlite")
    store.close()
    with pytest.raises(StoreUnavailable):
        store.multi([Create("/a")])
