"""Commands that are imported only when they are used.

A help text must not wait for librdkafka, so a group knows the name, the place and the one-line help of each command and
imports the module when that command is asked for. The tables in `main`, `topic`, ... are the single source of those
lines: the command objects themselves take theirs from there.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NamedTuple

import click


class Lazy(NamedTuple):
    """One command: `target` is "module:attribute" inside ottla.cli."""

    name: str
    target: str
    help: str


class Section(NamedTuple):
    title: str
    commands: Sequence[Lazy]


class LazyGroup(click.Group):
    """A group whose commands come from `sections`, shown under their titles and imported on use."""

    def __init__(self, *args: Any, sections: Sequence[Section] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.no_args_is_help = False  # see parse_args
        self._sections = sections
        self._lazy = {command.name: command for section in sections for command in section.commands}

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help(), err=True)
            ctx.exit(2)
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*self._lazy, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        lazy = self._lazy.get(cmd_name)
        if lazy is None:
            return super().get_command(ctx, cmd_name)
        module, _, attribute = lazy.target.partition(":")
        command: click.Command = getattr(import_module(f"ottla.cli.{module}"), attribute)
        command.short_help = lazy.help
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        known = self.list_commands(ctx)
        if name not in known and not name.startswith("-"):
            singular = name.removesuffix("s")
            if singular in known:
                args = [singular, *args[1:]]
            else:
                near = difflib.get_close_matches(name, known, n=1)
                hint = f"did you mean '{near[0]}'?" if near else f"choose one of {', '.join(known)}."
                raise click.UsageError(f"there is no command '{name}': {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Commands first: they are what one looks for."""
        self.format_commands(ctx, formatter)
        click.Command.format_options(self, ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        widest = max(len(name) for name in self._lazy)
        for section in self._sections:
            with formatter.section(section.title):
                formatter.write_dl([(command.name.ljust(widest), command.help) for command in section.commands])
