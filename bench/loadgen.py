"""Builds the load generator and runs it: `loadgen.c` where there is a C compiler, its slower twin in Python elsewhere.

The result says which one measured: figures of the two are not comparable, ratios between brokers are.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

HERE = Path(__file__).resolve().parent
CACHE = HERE.parent / ".cache" / "bench"
RUN_SECONDS_MAX = 300


class LoadGenFailed(RuntimeError):
    """The generator met an error code or a broken connection: the measurement is void."""


@dataclass(frozen=True)
class Load:
    """What the generator saw. `counted` is inside the measured window, `total` includes the warm-up."""

    counted: int
    counted_bytes: int
    elapsed_s: float
    total_requests: int
    total_bytes: int
    records: int
    p50_ms: float
    p90_ms: float
    p99_ms: float
    p999_ms: float
    max_ms: float
    client_cpu_s: float

    @property
    def per_second(self) -> float:
        return self.counted / self.elapsed_s

    @property
    def counted_mb_per_second(self) -> float:
        return self.counted_bytes / 1e6 / self.elapsed_s

    @property
    def total_mb_per_second(self) -> float:
        return self.total_bytes / 1e6 / self.elapsed_s


@cache
def command() -> tuple[str, ...]:
    """How to call the generator; compiles it when its source has changed."""
    source = HERE / "loadgen.c"
    compiler = os.environ.get("OTTLA_BENCH_CC") or shutil.which("cc") or shutil.which("gcc")
    if not compiler or compiler == "none":
        return (sys.executable, str(HERE / "loadgen_fallback.py"))
    built = CACHE / f"loadgen-{hashlib.sha256(source.read_bytes()).hexdigest()[:12]}"
    if not built.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        fresh = built.with_suffix(f".{os.getpid()}")
        subprocess.run([compiler, "-O2", "-o", str(fresh), str(source)], check=True)
        os.replace(fresh, built)
    return (str(built),)


def describe() -> str:
    return "Python (no C compiler here)" if len(command()) > 1 else "C"


def _arguments(mode: str, host: str, ports: int | Sequence[int], options: dict[str, object]) -> list[str]:
    arguments = [*command(), mode, "--host", host]
    for port in [ports] if isinstance(ports, int) else ports:
        arguments += ["--port", str(port)]
    for name, value in options.items():
        arguments += [f"--{name.replace('_', '-')}", str(value)]
    return arguments


def run(mode: str, host: str, ports: int | Sequence[int], **options: object) -> Load:
    """With several ports, brokers of one cluster, there is a frame for each of them in turn."""
    outcome = subprocess.run(
        _arguments(mode, host, ports, options), capture_output=True, text=True, timeout=RUN_SECONDS_MAX
    )
    if outcome.returncode != 0:
        raise LoadGenFailed(outcome.stderr.strip() or f"exit status {outcome.returncode}")
    return Load(**json.loads(outcome.stdout))


@contextlib.contextmanager
def held_open(host: str, port: int, connections: int, frames: Path) -> Iterator[None]:
    """So many connections, each having had one answer, that do nothing more until the block ends."""
    arguments = _arguments("idle", host, port, {"connections": connections, "frames": frames})
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            if not process.stdout.readline():
                raise LoadGenFailed(f"{connections} idle connections could not be opened")
            yield
        finally:
            process.stdin.close()
            process.wait(10)
