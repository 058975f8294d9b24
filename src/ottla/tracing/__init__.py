"""The path of a record over topics, pipelines and groups, on any Kafka cluster.

`trace` finds it; `Trace` is what it found, with `as_json`; `render_svg` draws it.
"""

from ottla.tracing.limits import Budget, Limits
from ottla.tracing.model import GroupRead, Hop, Position, Preview, Searched, Trace
from ottla.tracing.picture import render_svg
from ottla.tracing.search import Raw, View
from ottla.tracing.tracing import NothingToFollow, trace

__all__ = [
    "Budget",
    "GroupRead",
    "Hop",
    "Limits",
    "NothingToFollow",
    "Position",
    "Preview",
    "Raw",
    "Searched",
    "Trace",
    "View",
    "render_svg",
    "trace",
]
