"""`ottla connect`: runs a worker, and talks to one over its REST API."""

from __future__ import annotations

from ottla.cli.lazy import Lazy, Section
from ottla.cli.settings import VerbGroup

connect = VerbGroup(
    "connect",
    help="Data in and out of topics: workers and connectors with Kafka Connect's REST API.",
    sections=(
        Section(
            "Run",
            (
                Lazy("start", "connect.start:start", "Start a worker in the foreground."),
                Lazy("standalone", "connect.standalone:standalone", "Run the connectors of property files."),
            ),
        ),
        Section(
            "Look",
            (
                Lazy("list", "connect.show:list_connectors", "List connectors with their states."),
                Lazy("status", "connect.show:status", "How a connector and its tasks fare."),
                Lazy("offsets", "connect.show:offsets", "How far a connector has read; --reset, --set."),
                Lazy("plugins", "connect.show:plugins", "Which connectors a worker has, and their settings."),
            ),
        ),
        Section(
            "Change",
            (
                Lazy("create", "connect.change:create", "Create a connector, or change its configuration."),
                Lazy("pause", "connect.change:pause", "Let connectors rest."),
                Lazy("resume", "connect.change:resume", "Let them go on."),
                Lazy("stop", "connect.change:stop", "Stop connectors."),
                Lazy("restart", "connect.change:restart", "Restart connectors and their tasks."),
                Lazy("delete", "connect.change:delete", "Delete connectors."),
            ),
        ),
    ),
)
