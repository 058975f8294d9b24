"""What the user said once for every command: which cluster, with which settings, and how to print.

The same options are accepted before the verb and after it (`ottla -b X topic list`, `ottla topic list -b X`), so they
do not travel as parameters: each writes into the one `Settings` of the invocation, which commands get with
`@click.pass_obj`. Precedence for a client setting, strongest first: `-b`, `-X`, `--profile`, OTTLA_BOOTSTRAP_SERVERS,
OTTLA_PROFILE, localhost:9092.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import click

from ottla.cli.given import GivenName
from ottla.cli.lazy import LazyGroup

DEFAULT_BOOTSTRAP = "localhost:9092"
OUTPUTS = ("table", "json", "yaml")

Number = TypeVar("Number", int, float)


@dataclass
class Settings:
    bootstrap: str | None = None
    profile: str | None = None
    overrides: dict[str, str] = field(default_factory=dict)
    output: str = "table"
    dry_run: bool = False
    yes: bool = False

    def client_settings(self) -> dict[str, str]:
        """librdkafka settings from the flags, the environment and the profile."""
        merged: dict[str, str] = {"bootstrap.servers": DEFAULT_BOOTSTRAP}
        if named := os.environ.get("OTTLA_PROFILE"):
            merged |= self._profile_settings(named)
        if servers := os.environ.get("OTTLA_BOOTSTRAP_SERVERS"):
            merged["bootstrap.servers"] = servers
        if self.profile:
            merged |= self._profile_settings(self.profile)
        merged |= self.overrides
        if self.bootstrap:
            merged["bootstrap.servers"] = self.bootstrap
        return merged

    @staticmethod
    def _profile_settings(name: str) -> dict[str, str]:
        from ottla.cli.profiles import load_profile

        return load_profile(name)

    def refuse_dry_run(self, command: str) -> None:
        if self.dry_run:
            raise click.UsageError(f"'{command}' has no --dry-run.")


def parse_assignment(text: str, flag: str) -> tuple[str, str]:
    """`name=value`, as -X, -c and -H take it."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise click.UsageError(f"{flag} takes name=value, not '{text}'.")
    return name.strip(), value


# What Kafka's messages have room for: ids and numbers of partitions, and offsets.
INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1
PORT_MAX = 65_535
# thirty years: what any clock of the system can wait for
SECONDS_MAX = 1e9
# librdkafka's
RECORD_BYTES_MAX = 1_000_000_000
# on one machine
BROKERS_MAX = 100


def at_least(least: Number, most: float | None = None) -> Callable[[str], Number]:
    """The type of an option that is a number with limits: above, those of Kafka's messages unless others are given, for
    what does not fit there fails somewhere below as no user should see.

    click's own ranges would print `INTEGER RANGE` and `[x>=0]` into the help.
    """
    if most is None:
        most = INT32_MAX if isinstance(least, int) else SECONDS_MAX

    def number(text: str) -> Number:
        try:
            value = type(least)(text)
        except ValueError:
            raise click.BadParameter(f"'{text}' is not a number.") from None
        if not value >= least:
            raise click.BadParameter(f"{text} is less than {least}.")
        if value > most:
            raise click.BadParameter(f"{text} is more than {most:.0f}.")
        return value

    number.__name__ = "N"  # what the help shows
    return number


# -- the options themselves ---------------------------------------------------------------------------------------


class SettingsOption(click.Option):
    """An option that writes into `Settings`, before the verb or after it."""


class GlobalOption(SettingsOption):
    """One that every command takes; shown in a section of its own."""


def _remember(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    settings = ctx.ensure_object(Settings)
    if param.name == "overrides":
        settings.overrides.update(parse_assignment(override, "-X") for override in value)
    elif value:
        assert param.name is not None
        setattr(settings, param.name, value)


def _global(*names: str, **more: Any) -> GlobalOption:
    return GlobalOption(names, expose_value=False, callback=_remember, **more)


def _of_changes(*names: str, **more: Any) -> SettingsOption:
    return SettingsOption(names, is_flag=True, expose_value=False, callback=_remember, **more)


def connection_options() -> list[click.Parameter]:
    return [
        _global(
            "-b",
            "--bootstrap-server",
            "bootstrap",
            metavar="HOST:PORT",
            type=GivenName(),
            help="Brokers, separated by commas [OTTLA_BOOTSTRAP_SERVERS, or localhost:9092].",
        ),
        _global(
            "--profile",
            metavar="NAME",
            type=GivenName(),
            help="Settings from ~/.config/ottla/profiles.toml [OTTLA_PROFILE].",
        ),
        _global("-X", "overrides", multiple=True, metavar="NAME=VALUE", help="A librdkafka setting; repeatable."),
        _global("--output", type=click.Choice(OUTPUTS), help="How to print [table]."),
    ]


def dry_run_option() -> click.Parameter:
    return _of_changes("--dry-run", help="Say what would be done, and do nothing.")


def yes_option(**more: Any) -> click.Parameter:
    return _of_changes("-y", "--yes", help="Do not ask.", **more)


partition_option = click.option(
    "-p", "--partition", "partitions", type=at_least(0), multiple=True, help="Only this one; repeatable."
)


class OttlaCommand(click.Command):
    """A command that reaches a cluster: the connection options come with it.

    `changes=True` adds --dry-run, `asks=True` adds -y. A script may say -y to all that change something.
    """

    def __init__(self, *args: Any, changes: bool = False, asks: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._has_dry_run = changes
        self.params += [dry_run_option()] if changes else []
        self.params += [yes_option(hidden=not asks)] if changes or asks else []
        self.params += connection_options()

    def invoke(self, ctx: click.Context) -> Any:
        if not self._has_dry_run:  # it may stand before the verb, where every option is taken
            ctx.ensure_object(Settings).refuse_dry_run(ctx.command_path.removeprefix("ottla "))
        return super().invoke(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        own: list[tuple[str, str]] = []
        shared: list[tuple[str, str]] = []
        for param in self.get_params(ctx):
            if isinstance(param, click.Option) and (record := param.get_help_record(ctx)) is not None:
                (shared if isinstance(param, GlobalOption) else own).append(record)
        with formatter.section("Options"):
            formatter.write_dl(own)
        with formatter.section("Options of every command"):
            formatter.write_dl(shared)


class VerbGroup(LazyGroup):
    """`ottla topic`, `ottla group`, ...: accepts the connection options between noun and verb as well."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for option in (*connection_options(), dry_run_option(), yes_option()):
            assert isinstance(option, click.Option)
            option.hidden = True
            self.params.append(option)


def command(name: str, **more: Any) -> Callable[[Callable[..., Any]], click.Command]:
    """`@command("list")`: a click command with the options of every command, called with Settings first."""

    def decorate(function: Callable[..., Any]) -> click.Command:
        made: click.Command = click.command(name, cls=OttlaCommand, **more)(click.pass_obj(function))
        return made

    return decorate
