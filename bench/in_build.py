"""Measurements inside a build's own Python: its kernel and its side of Spark, which a broker's address cannot show.

`Inside` starts this module with the build's interpreter and sends it one JSON request per line. The bench is that of
today; what it imports as `ottla` is the build's.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from bench.builds import REPO_ROOT, Build
from bench.contenders import Contender, Scale
from bench.measure import Values


class Inside:
    """Lives for all rounds, so that its JVM is warm; `measure` is one of them."""

    def __init__(self, build: Build, log: Path) -> None:
        self._build = build
        self._log = log

    def __enter__(self) -> Self:
        python = str(self._build.python)
        environment = os.environ | self._build.environment | {"PYTHONPATH": str(REPO_ROOT), "PYSPARK_PYTHON": python}
        with self._log.open("wb") as errors:
            self._process = subprocess.Popen(
                [python, "-m", "bench.in_build"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=environment,
            )
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.communicate()

    def measure(self, name: str, contender: Contender | None = None) -> Values:
        request: dict[str, Any] = {"name": name}
        if contender is not None:
            broker = contender.broker
            request |= {"host": broker.host, "port": broker.port, "folder": str(broker.folder)}
            request |= {"scale": asdict(contender.scale)}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        answer: dict[str, Any] = json.loads(line) if line else {"error": f"it ended: see {self._log}"}
        if "error" in answer:
            raise RuntimeError(f"{name} in {self._build.label}: {answer['error']}")
        values: dict[str, float] = answer["values"]
        return values


@dataclass(frozen=True)
class _Broker:
    """One that somebody else started."""

    host: str
    port: int
    folder: Path

    @property
    def bootstrap(self) -> str:
        return f"{self.host}:{self.port}"


def _contender(request: dict[str, Any], known: dict[int, Contender]) -> Contender:
    port = request["port"]
    if port not in known:
        broker = _Broker(request["host"], port, Path(request["folder"]))
        known[port] = Contender("ottla", broker, Scale(**request["scale"]))  # type: ignore[arg-type]
    return known[port]


def _measurements(known: dict[int, Contender], request: dict[str, Any]) -> dict[str, Callable[[], Values]]:
    from bench import lines_kernel, lines_spark, lines_spark_sink

    def contender() -> Contender:
        return _contender(request, known)

    return {
        "kernel": lambda: lines_kernel.decode_with("decode", lines_kernel.COMPILED_SECONDS),
        "spark-batch": lambda: lines_spark.read_batch(contender(), lines_spark.OURS),
        "spark-stream": lambda: lines_spark.read_stream(contender(), lines_spark.OURS),
        "spark-sink": lambda: lines_spark_sink.copy_all(contender(), lines_spark.OURS),
        "spark-latency": lambda: lines_spark_sink.latency(contender(), lines_spark.OURS, lines_spark_sink.RATES[1]),
    }


def main(requests: IO[str], answers: IO[str]) -> None:
    known: dict[int, Contender] = {}
    for line in requests:
        request = json.loads(line)
        try:
            answer: dict[str, Any] = {"values": _measurements(known, request)[request["name"]]()}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    # What Spark prints must not come between the answers.
    told = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    main(sys.stdin, told)
