"""A Java program of Kafka's, as a child process that may be killed and started again."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

from tests.support.kafka_jars import class_path, quick_java, require_kafka_libs


class Program:
    """`main` is a class of Kafka's jars, or a source file, which Java compiles and runs."""

    def __init__(
        self, main: str | Path, arguments: Sequence[object], log: Path, java: Sequence[str] | None = None
    ) -> None:
        """`java`: the beginning of the command; a JVM for a short life, if none is named."""
        libs = require_kafka_libs()
        if not any(libs.glob("kafka-streams-*.jar")):
            pytest.skip("Streams, Connect and MirrorMaker are not there: run `python tools/fetch_jars.py kafka`")
        if isinstance(main, Path) and shutil.which("javac") is None:
            pytest.skip("there is a Java runtime but no javac")
        self._command = [*(java or quick_java("512m")), "-cp", class_path(libs), str(main), *map(str, arguments)]
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> Self:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        return self

    def kill(self) -> None:
        """kill -9."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(30)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.kill()

    def check(self) -> None:
        """That it has not ended by itself."""
        assert self._process is not None
        assert self._process.poll() is None, self._log.read_text(errors="replace")[-3000:]
