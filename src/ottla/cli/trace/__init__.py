"""`ottla trace TOPIC PARTITION OFFSET` and `ottla trace watch FILE`: the first has no verb, as it is what one mostly
wants. A topic that is called `watch` is traced by `ottla trace record watch 0 17`."""

from __future__ import annotations

import click

from ottla.cli.lazy import Lazy, Section
from ottla.cli.settings import VerbGroup

_RECORD = "record"


class _TraceGroup(VerbGroup):
    """Arguments that do not begin with a verb are those of `record`, and so is the help."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:
            click.echo(self.get_help(ctx), err=True)
            ctx.exit(2)
        at = self._options_end(args)
        if at < len(args) and args[at] not in (*self.list_commands(ctx), *ctx.help_option_names):
            args = [*args[:at], _RECORD, *args[at:]]
        return super().parse_args(ctx, args)

    def _options_end(self, args: list[str]) -> int:
        """Where the options of every command end that stand before the verb."""
        takes_value = {
            name: not option.is_flag
            for option in self.params
            if isinstance(option, click.Option)
            for name in option.opts
        }
        at = 0
        while at < len(args) and args[at] in takes_value:
            at += 2 if takes_value[args[at]] else 1
        return at

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        record = self.get_command(ctx, _RECORD)
        assert record is not None
        record.format_usage(ctx, formatter)
        record.format_help_text(ctx, formatter)
        self.format_commands(ctx, formatter)
        record.format_options(ctx, formatter)


trace = _TraceGroup(
    "trace",
    sections=(
        Section(
            "Commands",
            (
                Lazy("record", "trace.record:record", "What `ottla trace TOPIC PARTITION OFFSET` is short for."),
                Lazy("watch", "trace.watch:watch", "Watch a business process: stuck, missing, late, doubled ones."),
            ),
        ),
    ),
)
