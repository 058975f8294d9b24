"""Options of the commands that go on serving: where they are watched, and what they log."""

from __future__ import annotations

import click

from ottla.cli.listen_address import ListenAddress

metrics_option = click.option(
    "--metrics",
    type=ListenAddress(any_host=True),
    help="Where /metrics and /health/ready are served over HTTP [nowhere].",
)
log_level_option = click.option(
    "--log-level",
    type=click.Choice(("debug", "info", "warning", "error")),
    default="info",
    help="The least that is logged [info].",
)
log_format_option = click.option(
    "--log-format", type=click.Choice(("text", "json")), default="text", help="Of the log [text]."
)
