"""What a pipeline tells of itself over HTTP, from the status that its runner keeps."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.common.errors import OttlaError
from ottla.spark.pipeline.home import RUNNING, Home, Status
from ottla.spark.pipeline.metrics import serve_pipeline_metrics
from tests.support.metrics_page import MetricsPage, get


def test_a_status_becomes_metrics(tmp_path: Path) -> None:
    home = Home(tmp_path, "orders")
    home.folder.mkdir()
    home.write(Status("orders", state=RUNNING, batch=7, rows_in=100, rows_out=90, dead_letters=10, lag=5, batch_ms=250))
    url, endpoint = serve_pipeline_metrics(home, "127.0.0.1:0")
    with home.locked(), endpoint:
        page = MetricsPage.at(f"{url}/metrics")
        labels = {"pipeline": "orders"}
        assert page.value("ottla_pipeline_rows_in_total", **labels) == 100
        assert page.value("ottla_pipeline_dead_letters_total", **labels) == 10
        assert page.value("ottla_pipeline_lag", **labels) == 5
        assert page.value("ottla_pipeline_batch_seconds", **labels) == 0.25
        assert page.value("ottla_pipeline_state", state=RUNNING, **labels) == 1
        home.write(Status("orders", state=RUNNING, rows_in=200))
        assert MetricsPage.at(f"{url}/metrics").value("ottla_pipeline_rows_in_total", **labels) == 200
    with pytest.raises(OSError):
        get(f"{url}/metrics")


def test_an_address_that_is_none_is_refused_with_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(OttlaError, match="expected HOST:PORT"):
        serve_pipeline_metrics(Home(tmp_path, "orders"), "nowhere")
