"""Pipelines that are started from the console: only files of the folder that its operator named."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from ottla.common.errors import OttlaError
from ottla.console.pipeline_files import PIPELINE, STREAMS, PipelineStarter, files_of
from ottla.testing import Broker
from tests.console.running import RunningConsole
from tests.console.test_pages import until

# A file is run before it is known to be a pipeline: this one says what it was started with, and stays.
SAYS = """
import json, os, pathlib, time
from ottla.cli.settings import Settings
told = {{"pid": os.getpid(), "session": os.getsid(0), "command": pathlib.Path("/proc/self/cmdline").read_text()}}
told["client"] = Settings().client_settings()
new = pathlib.Path({out!r} + ".new")
new.write_text(json.dumps(told))
new.rename({out!r})
time.sleep(600)
"""


def test_files_are_told_apart_by_what_they_import(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "evil.py").write_text("import ottla.streams")
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "a.sql").write_text("select 1")
    (folder / "b.py").write_text("from ottla.spark.pipeline import pipeline")
    (folder / "c.py").write_text("from ottla.streams import Application")
    (folder / "d.py").write_text("from ottla import streams")
    (folder / "shared.py").write_text("import json")
    (folder / "broken.py").write_text("def (")
    (folder / "notes.txt").write_text("")
    (folder / "link.py").symlink_to(tmp_path / "outside" / "evil.py")
    assert {file.name: file.kind for file in files_of(folder)} == {
        "a.sql": PIPELINE,
        "b.py": PIPELINE,
        "broken.py": PIPELINE,
        "c.py": STREAMS,
        "d.py": STREAMS,
    }
    starter = PipelineStarter(folder, tmp_path / "data", {"bootstrap.servers": "x:1"})
    for name in ("../outside/evil.py", "link.py", "/etc/passwd", "", "notes.txt", "shared.py"):
        with pytest.raises(OttlaError, match="there is no pipeline"):
            starter.find(name)
    with pytest.raises(OttlaError, match="--pipeline-files cannot be read"):
        files_of(tmp_path / "nowhere")


def test_a_file_is_started_with_the_login_of_the_console_and_stopped(broker: Broker, tmp_path: Path) -> None:
    folder, out = tmp_path / "files", tmp_path / "told.json"
    folder.mkdir()
    (folder / "long.py").write_text(SAYS.format(out=str(out)))
    (folder / "wrong.py").write_text("from ottla.spark.pipeline import pipeline\nraise ValueError('<b>no</b>')")
    # The protocol is plain: that there is a password changes nothing for the broker.
    client = {"sasl.username": "me", "sasl.password": 'S3CRET "\\ \t'}
    settings = {"pipeline_files": folder, "pipelines": tmp_path / "data", "client": client}
    with RunningConsole(broker.bootstrap_servers, **settings) as running:
        visitor = running.visitor()
        page = visitor.get("/pipelines").text
        assert "long.py" in page and "never run here" in page
        assert "long.py is started" in visitor.post("/pipelines", {"file": "long.py"}).text
        until(out.exists)
        told = json.loads(out.read_text())
        assert told["client"] == {"bootstrap.servers": broker.bootstrap_servers, **client}
        assert "S3CRET" not in told["command"] and told["session"] == told["pid"]
        assert "starting already" in visitor.post("/pipelines", {"file": "long.py"}).text
        os.kill(told["pid"], signal.SIGKILL)
        until(lambda: "It ended with status -9" in visitor.get("/pipelines").text)
        visitor.post("/pipelines", {"file": "wrong.py"})
        until(lambda: "&lt;b&gt;no&lt;/b&gt;" in visitor.get("/pipelines").text)
        assert "there is no pipeline" in visitor.post("/pipelines", {"file": "../files/long.py"}).text
        assert visitor.post("/pipelines", {"file": "long.py"}, token="wrong").status_code == 403


def test_nothing_is_started_where_nobody_said_so(broker: Broker, tmp_path: Path) -> None:
    with RunningConsole(broker.bootstrap_servers, pipelines=tmp_path) as running:
        assert "--pipeline-files DIR" in running.visitor().get("/pipelines").text
        assert "starts nothing" in running.visitor().post("/pipelines", {"file": "x.py"}).text
    with RunningConsole(broker.bootstrap_servers, pipeline_files=tmp_path, is_read_only=True) as running:
        assert running.visitor().post("/pipelines", {"file": "x.py"}).status_code == 403
