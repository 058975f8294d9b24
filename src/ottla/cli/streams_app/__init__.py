"""`ottla streams`: the group. Applications live where pipelines do on a machine, under names that neither shares with
the other (both are transactional ids), so looking at them and stopping them are the verbs of pipelines."""

from __future__ import annotations

from ottla.cli.lazy import Lazy, Section
from ottla.cli.settings import VerbGroup

streams = VerbGroup(
    "streams",
    help="Topologies of Ottla Streams on Spark: run, describe, switch, list, status, logs, stop, delete.",
    sections=(
        Section(
            "Run",
            (
                Lazy("run", "streams_app.run:run", "Run an application from its file, exactly once."),
                Lazy("describe", "streams_app.describe:describe", "Show the topology of an application."),
                Lazy("switch", "streams_app.switch:switch", "Let a run with --reprocess take the old one's place."),
            ),
        ),
        Section(
            "Look, stop and delete",
            (
                Lazy("list", "pipeline.show:list_pipelines", "List applications and pipelines of this machine."),
                Lazy("status", "pipeline.show:status", "How far an application is."),
                Lazy("logs", "pipeline.logs:logs", "What Spark and the application said."),
                Lazy("stop", "pipeline.show:stop", "Stop applications after the batch they are at."),
                Lazy("delete", "streams_app.delete:delete", "Delete applications that do not run, with their state."),
            ),
        ),
    ),
)
