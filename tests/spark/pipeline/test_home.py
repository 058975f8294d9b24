"""The folder of a pipeline: one runner at a time, and what others see of it."""

from __future__ import annotations

import errno
import fcntl
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ottla.common.errors import OttlaError
from ottla.spark.pipeline.home import DIED, FINISHED, RUNNING, Home, Status, data_folder, home_of, homes
from tests.support.kafka_jars import REPO_ROOT

HOLD = """
import sys, time
from pathlib import Path
from ottla.spark.pipeline.home import Home, Status
home = Home(Path(sys.argv[1]), "orders")
with home.locked():
    home.write(Status("orders", state="running"))
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_runner_is_refused_and_told_who_runs(tmp_path: Path) -> None:
    with _holder(tmp_path) as first:
        assert first.stdout is not None
        first.stdout.readline()
        with pytest.raises(OttlaError, match=f"running already .pid {first.pid}."), Home(tmp_path, "orders").locked():
            pass
        assert Home(tmp_path, "orders").is_running()
        assert Home(tmp_path, "orders").read().state == RUNNING
        first.kill()
        first.wait()
    home = Home(tmp_path, "orders")
    assert not home.is_running()
    assert home.read().state == DIED
    with home.locked():
        assert home.is_running()


def _holder(folder: Path) -> subprocess.Popen[bytes]:
    return _process(HOLD, folder)


def _process(code: str, folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", code, str(folder)], stdout=subprocess.PIPE, env={"PYTHONPATH": str(REPO_ROOT / "src")}
    )


def test_a_status_is_read_as_it_was_written(tmp_path: Path) -> None:
    home = Home(tmp_path, "orders")
    status = Status("orders", state=RUNNING, batch=7, rows_in=10, lag=3, topics=["out"])
    with home.locked():
        home.write(status)
        assert home.read() == status


def test_a_status_that_cannot_be_read_is_no_failure(tmp_path: Path) -> None:
    home = Home(tmp_path, "orders")
    with home.locked():
        (home.folder / "status.json").write_text('{"name": "orders", "colour": "from a newer version"}')
        assert home.read().name == "orders"
        for odd in ("{", "[]", "5", '{"name": 7}', '{"name": "orders", "updated": "soon"}', '{"state": ["running"]}'):
            (home.folder / "status.json").write_text(odd)
            assert (home.read().name, home.read().updated) == ("orders", 0)


def test_pipelines_are_found_by_name(tmp_path: Path) -> None:
    assert homes(tmp_path / "none") == []
    with Home(tmp_path, "orders").locked():
        assert home_of(tmp_path, "orders").name == "orders"
        with pytest.raises(OttlaError, match=r"no pipeline 'order' was run in .* \(there are: orders\)"):
            home_of(tmp_path, "order")


def test_the_folder_is_named_or_in_the_environment_or_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTTLA_PIPELINES", "/a")
    assert data_folder(Path("/b")) == Path("/b")
    assert data_folder() == Path("/a")
    monkeypatch.delenv("OTTLA_PIPELINES")
    monkeypatch.setenv("XDG_DATA_HOME", "/c")
    assert data_folder() == Path("/c/ottla/pipelines")


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OttlaError, match="cannot be used"), Home(tmp_path / "file", "orders").locked():
        pass


LOOK = """
import sys
from pathlib import Path
from ottla.spark.pipeline.home import homes
print("looking", flush=True)
while True:
    for home in homes(Path(sys.argv[1])):
        home.is_running()
        home.read()
"""


def test_looking_never_refuses_a_start(tmp_path: Path) -> None:
    home = Home(tmp_path, "orders")
    with home.locked():
        home.write(Status("orders", state=RUNNING))
    refused = 0
    with _process(LOOK, tmp_path) as looking:
        assert looking.stdout is not None
        looking.stdout.readline()
        for _ in range(2_000):
            try:
                with home.locked():
                    pass
            except OttlaError:
                refused += 1
        looking.kill()
    assert refused == 0


def test_a_lock_that_was_deleted_while_it_was_taken_is_nobodys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home(tmp_path, "orders")
    taken = fcntl.fcntl

    def delete_before(*arguments: Any) -> Any:
        home.remove()
        return taken(*arguments)

    monkeypatch.setattr(fcntl, "fcntl", delete_before)
    with pytest.raises(OttlaError, match="was deleted at this moment"), home.locked():
        pass


def test_a_file_system_without_locks_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any) -> Any:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "fcntl", refuse)
    with pytest.raises(OttlaError, match="cannot be locked: No locks available"), Home(tmp_path, "orders").locked():
        pass


def test_the_last_word_of_a_runner_counts_although_it_ends_while_somebody_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(tmp_path, "orders")
    with home.locked():
        home.write(Status("orders", state=RUNNING))

    def ends(home: Home) -> bool:
        home.write(Status("orders", state=FINISHED))
        return False

    monkeypatch.setattr(Home, "is_running", ends)
    assert home.read().state == FINISHED
