"""`ottla pipeline`: the group; `pipeline_run` runs one, `pipeline_show` looks at and stops those that run."""

from __future__ import annotations

from ottla.cli.lazy import Lazy, Section
from ottla.cli.settings import VerbGroup

pipeline = VerbGroup(
    "pipeline",
    help="Pipelines on Spark: run, list, status, stop.",
    sections=(
        Section("Run", (Lazy("run", "pipeline_run:run", "Run a pipeline from its file, exactly once."),)),
        Section(
            "Look and stop",
            (
                Lazy("list", "pipeline_show:list_pipelines", "List the pipelines of this machine."),
                Lazy("status", "pipeline_show:status", "How far a pipeline is."),
                Lazy("stop", "pipeline_show:stop", "Stop pipelines after the batch they are at."),
            ),
        ),
    ),
)
