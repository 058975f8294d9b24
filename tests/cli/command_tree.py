"""Every verb of the command, found by walking it, so that a new one cannot be forgotten."""

from __future__ import annotations

from collections.abc import Iterator

import click

from ottla.cli.main import build

Path = tuple[str, ...]


def verbs() -> dict[Path, click.Command]:
    """`("topic", "list")` and its command, for all of them."""
    root = build()
    return dict(_leaves(root, (), click.Context(root)))


def _leaves(command: click.Command, path: Path, context: click.Context) -> Iterator[tuple[Path, click.Command]]:
    if not isinstance(command, click.Group):
        yield path, command
        return
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert found is not None
        yield from _leaves(found, (*path, name), click.Context(found, context, name))
