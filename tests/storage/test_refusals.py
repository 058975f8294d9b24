"""What an operator hears of a directory that lacks something: once when it begins, once when it is over."""

from __future__ import annotations

import errno
import logging
import os
from pathlib import Path

import pytest

from ottla.storage.log_dirs import refusals
from ottla.storage.log_dirs.refusals import Refusals


@pytest.fixture(autouse=True)
def heard(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> pytest.LogCaptureFixture:
    monkeypatch.setattr(logging.getLogger("ottla"), "propagate", True)
    caplog.set_level(logging.INFO, "ottla.storage")
    return caplog


def _error(code: int) -> OSError:
    return OSError(code, os.strerror(code))


@pytest.mark.parametrize(
    ("code", "lacking", "advice"),
    [
        (errno.ENOSPC, "no room is left", "delete topics"),
        (errno.EDQUOT, "quota", "delete topics"),
        (errno.EMFILE, "file descriptors are in use", "LimitNOFILE"),
        (errno.ENFILE, "no file descriptors", "fs.file-max"),
    ],
)
def test_an_episode_is_said_once_with_the_path_and_what_to_do(
    tmp_path: Path, heard: pytest.LogCaptureFixture, code: int, lacking: str, advice: str
) -> None:
    found = Refusals(tmp_path)
    assert found.current is None
    for now_ms in range(1000):
        found.note(_error(code), now_ms)
    assert found.current is not None
    assert lacking in found.current
    (line,) = heard.messages
    assert str(tmp_path) in line
    assert lacking in line
    assert advice in line


def test_it_is_over_after_a_quiet_while_when_a_try_succeeds(
    tmp_path: Path, heard: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Refusals(tmp_path)
    found.note(_error(errno.ENOSPC), 0)
    found.note(_error(errno.ENOSPC), 5_000)
    found.tick(14_999)
    assert found.is_full

    def no_room(fd: int, start: int, size: int) -> None:
        raise _error(errno.ENOSPC)

    with monkeypatch.context() as full:
        full.setattr(refusals.os, "posix_fallocate", no_room)
        found.tick(15_000)
    assert found.is_full
    found.tick(15_000)
    assert found.current is None
    assert len(heard.messages) == 2
    assert "refused 2 times in 15 seconds" in heard.messages[1]
    assert not list(tmp_path.iterdir())
    found.note(_error(errno.ENOSPC), 20_000)
    assert len(heard.messages) == 3


def test_two_things_may_be_lacking_at_once(tmp_path: Path, heard: pytest.LogCaptureFixture) -> None:
    found = Refusals(tmp_path)
    found.note(_error(errno.ENOSPC), 0)
    found.note(_error(errno.EMFILE), 0)
    assert len(heard.messages) == 2
    found.tick(10_000)
    assert found.current is None
    assert len(heard.messages) == 4
