"""Debian's Prometheus, where it is installed: its tool for rules, and a server that scrapes for a test."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.support.process import free_ports

_START_S_MAX = 60.0


def why_no_prometheus() -> str | None:
    if shutil.which("prometheus") and shutil.which("promtool"):
        return None
    return "Prometheus is not installed: apt-get install prometheus"


def promtool(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["promtool", *arguments], capture_output=True, text=True, timeout=300)


class Prometheus:
    """`jobs` are names with their targets. Rules are those of a file, with all waiting times taken out of it."""

    def __init__(self, folder: Path, jobs: dict[str, list[str]], rules: Path) -> None:
        folder.mkdir(parents=True)
        impatient = re.sub(r"^ *for: \w+\n", "", rules.read_text(), flags=re.MULTILINE)
        (folder / "rules.yml").write_text(impatient.replace("[5m]", "[3s]"))
        config = {
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
            "rule_files": ["rules.yml"],
            "scrape_configs": [
                {"job_name": name, "static_configs": [{"targets": targets}]} for name, targets in jobs.items()
            ],
        }
        (folder / "prometheus.yml").write_text(json.dumps(config))  # which is YAML, too
        (port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{port}"
        self._log = (folder / "log").open("w")
        self._command = [
            "prometheus",
            f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
        ]

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(self._command, stdout=self._log, stderr=self._log)
        deadline = time.monotonic() + _START_S_MAX
        while time.monotonic() < deadline:
            try:
                self.ask("/api/v1/alerts")
                return self
            except OSError:
                assert self._process.poll() is None, "Prometheus has ended"
                time.sleep(0.1)
        raise TimeoutError("Prometheus does not answer")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.wait(60)
        self._log.close()

    def ask(self, path: str) -> Any:
        with urllib.request.urlopen(self.url + path, timeout=30) as answer:
            return json.load(answer)["data"]

    def firing(self) -> list[dict[str, str]]:
        """The labels of the alerts that fire."""
        return [alert["labels"] for alert in self.ask("/api/v1/alerts")["alerts"] if alert["state"] == "firing"]

    def await_value(self, query: str, wanted: float, timeout_s: float = 120.0) -> None:
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            found = self.ask("/api/v1/query?" + urllib.parse.urlencode({"query": query}))["result"]
            if found and float(found[0]["value"][1]) == wanted:
                return
            time.sleep(0.25)
        raise AssertionError(f"{query} is {found}")

    def await_alert(self, name: str, is_it: Callable[[dict[str, str]], bool], timeout_s: float = 120.0) -> None:
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            firing = self.firing()
            if any(labels["alertname"] == name and is_it(labels) for labels in firing):
                return
            time.sleep(0.25)
        raise AssertionError(f"{name} does not fire; those that do: {firing}")
