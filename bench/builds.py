"""A revision of Ottla, installed beside this one as a user would install it, to be measured with the bench of today.

Each one has a folder under `.cache/builds`, named after its tree: its sources, and an environment of its own with its
own dependencies and its own compiled kernel. What is here but not committed is a revision as well (untracked files
are left out). Both sides of a comparison are made alike, so that nothing but the code differs.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

REPO_ROOT = Path(__file__).resolve().parent.parent
BUILDS = REPO_ROOT / ".cache" / "builds"
BUILDS_KEPT = 4
SOURCES = ("src", "pyproject.toml", "hatch_build.py", "README.md", "LICENSE")
HERE = ""
NEEDED = ("pyarrow", "pytest")  # by the kernel, and by the modules that bench and tests share


class CannotBuild(RuntimeError):
    """Why a revision cannot be had, as one sentence."""


@dataclass(frozen=True)
class Build:
    label: str
    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "venv" / "bin" / "python"

    @property
    def environment(self) -> dict[str, str]:
        """Nothing of this folder's sources in the search path, and the bytecode that was compiled on installation."""
        return {"PYTHONPATH": "", "PYTHONPYCACHEPREFIX": "", "PYTHONDONTWRITEBYTECODE": ""}


def build(revision: str = HERE, extras: tuple[str, ...] = ()) -> Build:
    """`revision` as git names it, or what lies here with its changes."""
    commit = _git("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}") if revision else _as_it_lies_here()
    tree = _git("rev-parse", f"{commit}^{{tree}}")[:12]
    made = Build(_git("rev-parse", "--short", commit) if revision else "here", BUILDS / tree)
    done = made.folder / "-".join([".installed", *extras])
    if not done.exists():
        print(f"installing {made.label} into {made.folder.relative_to(REPO_ROOT)} ...", flush=True)
        _install(commit, made, extras)
        done.touch()
    os.utime(made.folder)
    return made


def forget_old_builds() -> None:
    """Each takes some 250 MB, with Spark a GB: those used last are kept."""
    by_age = sorted(BUILDS.iterdir(), key=lambda folder: folder.stat().st_mtime, reverse=True)
    for folder in by_age[BUILDS_KEPT:]:
        shutil.rmtree(folder, ignore_errors=True)


def _as_it_lies_here() -> str:
    """A commit that no branch has, of the files that git knows with the changes that they have now."""
    nobody = ["-c", "user.name=bench", "-c", "user.email=bench@localhost"]  # where git does not know who works here
    return _git(*nobody, "stash", "create") or _git("rev-parse", "HEAD")


def _install(commit: str, made: Build, extras: tuple[str, ...]) -> None:
    source = made.folder / "source"
    shutil.rmtree(source, ignore_errors=True)
    source.mkdir(parents=True)
    archive = subprocess.run(["git", "archive", commit, *SOURCES], cwd=REPO_ROOT, capture_output=True)
    if archive.returncode != 0:
        raise CannotBuild(f"git has not all of {made.label}: {archive.stderr.decode().strip()}")
    subprocess.run(["tar", "-x", "-C", str(source)], input=archive.stdout, check=True)
    if not made.python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(made.folder / "venv")], check=True)
    wanted = f"{source}[{','.join(extras)}]" if extras else str(source)
    command = [str(made.python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wanted, *NEEDED]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise CannotBuild(
            f"pip could not install {made.label}: {(done.stderr or done.stdout).strip().splitlines()[-1]}"
        )


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=REPO_ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        raise CannotBuild(f"git knows no revision {arguments[-1].removesuffix('^{commit}')}")
    return done.stdout.strip()
