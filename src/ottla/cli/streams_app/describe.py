"""`ottla streams describe`: the topology of a file, as Kafka Streams prints one or as a picture. Needs no Spark."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from ottla.cli.given import GivenPath
from ottla.cli.settings import Settings, command


@command("describe")
@click.argument("file", type=GivenPath())
@click.option("--mermaid", is_flag=True, help="As a Mermaid flowchart, for Markdown.")
@click.option("--svg", is_flag=True, help="As an SVG picture, for a browser.")
def describe(settings: Settings, file: Path, mermaid: bool, svg: bool) -> None:
    """Show the topology of the application in FILE: sub-topologies, nodes, stores, topics."""
    from ottla.streams.loading import load_application

    if mermaid and svg:
        raise click.UsageError("--mermaid and --svg are two pictures: choose one.")
    topology = load_application(file).topology
    described = topology.describe_as_svg if svg else topology.describe_as_mermaid if mermaid else topology.describe
    sys.stdout.write(described().rstrip("\n") + "\n")
