"""`ottla pipeline`: the group; `run` runs one, `show` looks at and stops those that run."""

from __future__ import annotations

from ottla.cli.lazy import Lazy, Section
from ottla.cli.settings import VerbGroup

pipeline = VerbGroup(
    "pipeline",
    help="Pipelines on Spark: check, run, list, status, logs, stop, delete.",
    sections=(
        Section(
            "Run",
            (
                Lazy("check", "pipeline.check:check", "Find what is wrong with pipelines without running them."),
                Lazy("run", "pipeline.run:run", "Run a pipeline from its file, exactly once."),
            ),
        ),
        Section(
            "Look, stop and delete",
            (
                Lazy("list", "pipeline.show:list_pipelines", "List the pipelines of this machine."),
                Lazy("status", "pipeline.show:status", "How far a pipeline is."),
                Lazy("logs", "pipeline.logs:logs", "What Spark and the pipeline said."),
                Lazy("stop", "pipeline.show:stop", "Stop pipelines after the batch they are at."),
                Lazy("delete", "pipeline.delete:delete", "Delete what is left of pipelines that do not run."),
            ),
        ),
    ),
)
