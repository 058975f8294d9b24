"""Spark standalone from the jars that `pip install pyspark` brings: a master and two workers, on free ports.

with SparkCluster(folder) as cluster:
    cluster.master           # spark://127.0.0.1:...
    cluster.python           # for executors: all that is installed here except Ottla
    cluster.executors()      # process ids
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path
from typing import Self

from tests.support.process import command_of, descendants, free_ports

WORKERS = 2
START_TIMEOUT_S = 60


def python_without_ottla(folder: Path) -> Path:
    """A Python with the same packages, linked, but without ours."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    target = folder / "lib" / version / "site-packages"
    for entry in Path(sysconfig.get_paths()["purelib"]).iterdir():
        if "ottla" not in entry.name.lower() and not (target / entry.name).exists():
            (target / entry.name).symlink_to(entry)
    return folder / "bin" / "python"


class SparkCluster:
    def __init__(self, folder: Path) -> None:
        import pyspark

        self._folder = folder
        self._home = Path(pyspark.__file__).parent
        self._processes: list[subprocess.Popen[bytes]] = []
        self.master = ""
        self.python = folder / "python" / "bin" / "python"

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        python_without_ottla(self._folder / "python")
        port, ui = free_ports(2)
        self.master = f"spark://127.0.0.1:{port}"
        main = "org.apache.spark.deploy"
        self._launch(
            "master", f"{main}.master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", str(ui)
        )
        for number in range(WORKERS):
            work = self._folder / f"work-{number}"
            self._launch(
                f"worker-{number}", f"{main}.worker.Worker", "--host", "127.0.0.1", "--webui-port", "0",
                "--cores", "1", "--memory", "1g", "--work-dir", str(work), self.master,
            )  # fmt: skip
        deadline = time.monotonic() + START_TIMEOUT_S
        while self._log("master").count("Registering worker") < WORKERS:
            assert time.monotonic() < deadline, f"the cluster did not start: {self._log('master')[-2000:]}"
            time.sleep(0.1)
        return self

    def _launch(self, name: str, *arguments: str) -> None:
        # Nothing of ours in the environment that executors inherit.
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        environment |= {"SPARK_HOME": str(self._home), "SPARK_NO_DAEMONIZE": "1", "PYSPARK_PYTHON": str(self.python)}
        environment |= {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "256m"}
        with (self._folder / f"{name}.log").open("ab") as log:
            self._processes.append(
                subprocess.Popen(
                    [str(self._home / "bin" / "spark-class"), *arguments],
                    stdout=log,
                    stderr=log,
                    env=environment,
                    start_new_session=True,
                    cwd=self._folder,
                )
            )

    def _log(self, name: str) -> str:
        path = self._folder / f"{name}.log"
        return path.read_text() if path.exists() else ""

    def executors(self) -> list[int]:
        """Children of the workers that run tasks."""
        return [
            one
            for process in self._processes[1:]
            for one in descendants(process.pid)
            if "CoarseGrainedExecutorBackend" in command_of(one)
        ]

    def executors_started(self) -> int:
        """Counting those that are gone."""
        return len(list(self._folder.glob("work-*/app-*/*")))

    def __exit__(self, *_: object) -> None:
        for process in reversed(self._processes):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(20)
