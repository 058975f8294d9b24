"""The last report of a watched process over HTTP: JSON at `/`, and counts for Prometheus at `/metrics`.

Read-only; it listens where it is told to, and asks nobody who they are.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Self

from starlette.responses import JSONResponse, Response

from ottla.http.server import HttpServer
from ottla.tracing.process.report import ProcessReport

_START_S_MAX = 30.0
_Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class ReportServer:
    """`with ReportServer(host, port) as server:`, then `server.publish(report)` after every round."""

    def __init__(self, host: str, port: int) -> None:
        self._http = HttpServer(lambda status, sentence: JSONResponse({"message": sentence}, status))
        self._host, self.port = host, self._http.bind(host, port)
        self._report: ProcessReport | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="process-report", daemon=True)

    @property
    def url(self) -> str:
        return f"http://{f'[{self._host}]' if ':' in self._host else self._host}:{self.port}"

    def publish(self, report: ProcessReport) -> None:
        self._report = report

    def __enter__(self) -> Self:
        async def app(scope: Any, receive: Any, send: _Send) -> None:
            await self._answer(scope["method"], scope["path"])(scope, receive, send)

        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._http.start(app), self._loop).result(_START_S_MAX)
        return self

    def __exit__(self, *exception: object) -> None:
        asyncio.run_coroutine_threadsafe(self._http.stop(), self._loop).result(_START_S_MAX)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _answer(self, method: str, path: str) -> Response:
        if method not in ("GET", "HEAD"):
            return JSONResponse({"message": "this is for reading only."}, 405)
        if path not in ("/", "/metrics"):
            return JSONResponse({"message": "there is / (JSON) and /metrics."}, 404)
        report = self._report
        if report is None:
            return JSONResponse({"message": "nothing was read yet."}, 503)
        if path == "/metrics":
            return Response(metrics_text(report), media_type="text/plain; version=0.0.4; charset=utf-8")
        return Response(json.dumps(report.as_json()), media_type="application/json")


def metrics_text(report: ProcessReport) -> str:
    """Prometheus' text format. The names of processes have nothing in them that would have to be escaped."""
    name = report.name
    lines = [
        "# HELP ottla_process_instances Instances of a business process by verdict, since its watch began.",
        "# TYPE ottla_process_instances gauge",
        *(
            f'ottla_process_instances{{process="{name}",verdict="{verdict.replace(" ", "_")}"}} {count}'
            for verdict, count in report.counts.items()
        ),
        "# HELP ottla_process_remembered_instances Instances that are kept in memory now.",
        "# TYPE ottla_process_remembered_instances gauge",
        f'ottla_process_remembered_instances{{process="{name}"}} {report.remembered}',
        "# HELP ottla_process_read_timestamp_seconds Up to when all topics of the process were read.",
        "# TYPE ottla_process_read_timestamp_seconds gauge",
        f'ottla_process_read_timestamp_seconds{{process="{name}"}} {report.as_of_ms / 1000:.3f}',
    ]
    return "\n".join(lines) + "\n"
