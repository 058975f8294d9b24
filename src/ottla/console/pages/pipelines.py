"""Pipelines and Streams applications of this machine: what their runners say of themselves; a signal stops one, and
those whose files are in the folder of `--pipeline-files` can be started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from ottla.common.errors import OttlaError
from ottla.console.pipeline_files import PipelineFile, files_of
from ottla.console.web.console import Console, Visitor
from ottla.console.web.handling import Done, NotFound, change, page
from ottla.console.web.requests import Form
from ottla.console.web.routing import Route
from ottla.spark.pipeline.home import Home, Status, data_folder, homes

_LOG_LINES = 60
_LOG_BYTES = 64 * 1024
_DRAW_S_MAX = 20
# Each is a process that takes a second of a core, and a mere look at a page asks for one.
_DRAWINGS_MAX = 2
_drawing = threading.BoundedSemaphore(_DRAWINGS_MAX)
_SVG_CSP = "default-src 'none'; style-src 'unsafe-inline'"
_WORST_FIRST = ("failed", "died", "waiting", "starting", "running", "stopping", "stopped", "finished")
_ALIVE = ("starting", "running", "waiting", "stopping")


@dataclass(frozen=True)
class FileRow:
    """A file that can be started, with what was run of it."""

    file: PipelineFile
    runs: list[Status]
    state: str
    problem: str

    @property
    def is_alive(self) -> bool:
        return self.state in _ALIVE


def pipelines(console: Console, request: Request) -> Response:
    folder = data_folder(console.settings.pipelines)
    found = [home.read() for home in homes(folder)]
    found.sort(key=lambda one: (_WORST_FIRST.index(one.state) if one.state in _WORST_FIRST else 99, one.name))
    files: list[FileRow] = []
    problem = None
    if console.starter is not None:
        try:
            files = [_row(console, file, found) for file in files_of(console.starter.folder)]
        except OttlaError as error:
            problem = str(error)
    return console.page(
        request, "pipelines.html", pipelines=found, folder=folder, files=files, problem_of_files=problem
    )


def _row(console: Console, file: PipelineFile, known: list[Status]) -> FileRow:
    assert console.starter is not None
    runs = [one for one in known if one.file and Path(one.file) == file.path]
    state, problem = console.starter.state(file.name) or ("", "")
    if any(one.state in _ALIVE for one in runs):
        state = next(one.state for one in runs if one.state in _ALIVE)
    elif state in ("", "ended"):
        state = runs[0].state if runs else ""
    return FileRow(file, runs, state, problem)


def _home(console: Console, request: Request) -> Home:
    name = request.path_params["name"]
    folder = data_folder(console.settings.pipelines)
    for home in homes(folder):
        if home.name == name:
            return home
    raise NotFound(f"No pipeline '{name}' was run in {folder}.")


def pipeline(console: Console, request: Request) -> Response:
    home = _home(console, request)
    try:
        with home.spark_log.open("rb") as file:
            # Logs grow to gigabytes, and the page is asked for again every few seconds.
            file.seek(max(0, file.seek(0, os.SEEK_END) - _LOG_BYTES))
            log = file.read(_LOG_BYTES).decode(errors="replace").splitlines(keepends=True)[-_LOG_LINES:]
    except OSError:
        log = []
    status = home.read()
    startable = _startable(console, status)
    return console.page(
        request,
        "pipeline.html",
        pipeline=status,
        row=None if startable is None else _row(console, startable, [status]),
        log="".join(log),
        has_topology=status.file.endswith(".py") and bool(status.file),
        folder=home.folder,
    )


def _startable(console: Console, status: Status) -> PipelineFile | None:
    if console.starter is None or not status.file:
        return None
    try:
        return next((file for file in files_of(console.starter.folder) if file.path == Path(status.file)), None)
    except OttlaError:
        return None  # the list of pipelines says what is wrong with the folder


def topology(console: Console, request: Request) -> Response:
    """The picture of a topology, drawn by another process: it runs the application's file."""
    status = _home(console, request).read()
    if not status.file.endswith(".py") or not os.path.isfile(status.file):
        raise NotFound("Its file is not there any more.")
    if not _drawing.acquire(blocking=False):
        raise OttlaError("other pictures are drawn already: try again in a moment.")
    try:
        done = subprocess.run(
            [sys.executable, "-m", "ottla", "streams", "describe", "--svg", status.file],
            capture_output=True,
            timeout=_DRAW_S_MAX,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        raise OttlaError(f"its file took longer than {_DRAW_S_MAX} s to say what it does.") from None
    finally:
        _drawing.release()
    if done.returncode or b"<svg" not in done.stdout:
        raise NotFound("It has no topology: it is a pipeline, or its file cannot be read.")
    return Response(done.stdout, media_type="image/svg+xml", headers={"content-security-policy": _SVG_CSP})


def start(console: Console, visitor: Visitor, form: Form, request: Request) -> Done:
    if console.starter is None:
        raise OttlaError("this console starts nothing: its operator names a folder with --pipeline-files.")
    file = console.starter.find(form.text("file"))
    row = _row(console, file, [home.read() for home in homes(data_folder(console.settings.pipelines))])
    if row.is_alive:
        raise OttlaError(f"{file.name} is {row.state} already.")
    console.starter.start(file)
    return Done(f"{file.name} is started: Spark takes some seconds.")


def stop(console: Console, visitor: Visitor, form: Form, request: Request) -> Done:
    home = _home(console, request)
    pid = home.pid()
    if not home.is_running() or pid is None:
        raise OttlaError(f"pipeline '{home.name}' is not running.")
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        raise OttlaError(f"pipeline '{home.name}' has just ended.") from None
    except PermissionError:
        raise OttlaError(f"pipeline '{home.name}' (pid {pid}) is run by another user: ask them to stop it.") from None
    return Done(f"Pipeline {home.name} is told to stop: it finishes the batch it is at.")


routes = [
    Route("/pipelines", page(pipelines)),
    Route("/pipelines", change("start pipelines", start), methods=["POST"]),
    Route("/pipelines/{name}", page(pipeline)),
    Route("/pipelines/{name}/topology.svg", page(topology)),
    Route("/pipelines/{name}/stop", change("stop pipelines", stop), methods=["POST"]),
]
