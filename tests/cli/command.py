"""Runs the real `ottla` command as a child process, away from the settings of whoever runs the tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.kafka_jars import REPO_ROOT

OUTSIDE = ("OTTLA_BOOTSTRAP_SERVERS", "OTTLA_PROFILE", "OTTLA_PROFILES", "NO_COLOR", "_OTTLA_COMPLETE", "TERM")


@dataclass(frozen=True)
class Outcome:
    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def data(self) -> Any:
        return json.loads(self.out)


@dataclass
class Cli:
    """`cli("topic", "list")`; `bootstrap` goes into the environment."""

    bootstrap: str | None = None
    environment: dict[str, str] | None = None

    @property
    def command(self) -> list[str]:
        return [sys.executable, "-m", "ottla"]

    def variables(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name not in OUTSIDE}
        kept["PYTHONPATH"] = str(REPO_ROOT / "src")
        if self.bootstrap is not None:
            kept["OTTLA_BOOTSTRAP_SERVERS"] = self.bootstrap
        return kept | (self.environment or {})

    def __call__(self, *arguments: str | Path, stdin: str | bytes = "", timeout_s: float = 60) -> Outcome:
        done = subprocess.run(
            [*self.command, *map(str, arguments)],
            input=stdin.encode() if isinstance(stdin, str) else stdin,
            capture_output=True,
            env=self.variables(),
            timeout=timeout_s,
        )
        return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())

    def ok(self, *arguments: str | Path, stdin: str | bytes = "", timeout_s: float = 60) -> Outcome:
        """As above, and it must succeed."""
        outcome = self(*arguments, stdin=stdin, timeout_s=timeout_s)
        assert outcome.status == 0, outcome
        return outcome

    def fails(self, status: int, *arguments: str | Path, stdin: str | bytes = "") -> str:
        """The one sentence of a failure with this exit status; nothing may look like a crash."""
        outcome = self(*arguments, stdin=stdin)
        assert outcome.status == status, outcome
        assert "Traceback" not in outcome.err
        said = outcome.err.strip().splitlines()
        assert len(said) == 1, outcome.err
        return said[0]

    def start(self, *arguments: str | Path, **more: Any) -> subprocess.Popen[bytes]:
        return subprocess.Popen([*self.command, *map(str, arguments)], env=self.variables(), **more)
