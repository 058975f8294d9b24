"""`ottla streams describe`: the topology of a file, as Kafka Streams prints one or as a picture. Needs no Spark."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from ottla.cli.settings import Settings, command


@command("describe")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--mermaid", is_flag=True, help="As a Mermaid flowchart, for Markdown.")
def describe(settings: Settings, file: Path, mermaid: bool) -> None:
    """Show the topology of the application in FILE: sub-topologies, nodes, stores, topics."""
    from ottla.streams.loading import load_application

    topology = load_application(file).topology
    sys.stdout.write((topology.describe_as_mermaid() if mermaid else topology.describe()).rstrip("\n") + "\n")
