"""A revision is measured as it was committed, and what lies here with the changes that it has."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bench import builds
from tests.support.kafka_jars import REPO_ROOT


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in builds.SOURCES:
        (tmp_path / name).write_text("committed")
    identity = ["-c", "user.name=somebody", "-c", "user.email=somebody@example.org"]
    for command in (["init", "-q"], ["add", "."], [*identity, "commit", "-q", "-m", "first"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    monkeypatch.setattr(builds, "REPO_ROOT", tmp_path)
    monkeypatch.setattr(builds, "BUILDS", tmp_path / ".cache" / "builds")
    return tmp_path


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The commits that would have been installed."""
    commits: list[str] = []

    def install(commit: str, made: builds.Build, extras: tuple[str, ...]) -> None:
        made.folder.mkdir(parents=True)
        commits.append(commit)

    monkeypatch.setattr(builds, "_install", install)
    return commits


def content(repository: Path, commit: str) -> str:
    return subprocess.check_output(["git", "show", f"{commit}:src"], cwd=repository, text=True)


def test_what_lies_here_has_its_changes_and_a_revision_has_none(repository: Path, installed: list[str]) -> None:
    (repository / "src").write_text("changed")
    old, here = builds.build("HEAD"), builds.build()
    assert [content(repository, commit) for commit in installed] == ["committed", "changed"]
    assert old.folder != here.folder
    assert here.label == "here"
    status = subprocess.check_output(["git", "status", "--short", "src"], cwd=repository, text=True)
    assert status == " M src\n"  # and nothing was stashed away


def test_the_same_tree_is_installed_once(repository: Path, installed: list[str]) -> None:
    assert builds.build("HEAD").folder == builds.build().folder
    assert len(installed) == 1


def test_only_the_builds_that_were_used_last_are_kept(
    repository: Path, installed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(builds, "BUILDS_KEPT", 1)
    builds.build("HEAD")
    (repository / "src").write_text("changed")
    here = builds.build()
    builds.forget_old_builds()
    assert list(builds.BUILDS.iterdir()) == [here.folder]


def test_an_unknown_revision_is_one_sentence() -> None:
    command = [sys.executable, "-m", "bench", "--against", "no-such-revision"]
    done = subprocess.run(command, cwd=REPO_ROOT, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (2, "git knows no revision no-such-revision\n")
