"""`ottla consume`: what to read, which records to keep and how to print them; `reader` does the reading."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import click

from ottla.cli.connection import Cluster
from ottla.cli.given import GivenName
from ottla.cli.name_completion import complete_group, complete_topic
from ottla.cli.records.positions import START, Kind, Span, parse_span
from ottla.cli.records.reader import Filter, Plan, Printer, Reader
from ottla.cli.schema.address import client_of, registry_option
from ottla.cli.settings import INT64_MAX, Settings, at_least, command, partition_option

ISOLATIONS = ("read_committed", "read_uncommitted")


@command("consume")
@click.argument("topics", nargs=-1, required=True, metavar="TOPIC...", shell_complete=complete_topic)
@click.option(
    "-o", "--offset", "span", metavar="WHERE", help="start (default), end, N, -N (last N), @TIME, or a span N:M, @T:@U."
)
@click.option("-n", "--count", type=at_least(0, INT64_MAX), metavar="N", help="Stop after N records.")
@click.option("-e", "--exit-at-end", is_flag=True, help="Stop when the end of every partition is reached.")
@click.option(
    "-g", "--group", metavar="GROUP", type=GivenName(), help="Join a group and commit.", shell_complete=complete_group
)
@partition_option
@click.option("-f", "--format", "format_text", metavar="FORMAT", help=r"kcat's: %t %p %o %k %s %T %h %K %S \n ...")
@click.option("-K", "--key-delimiter", metavar="TEXT", help="Print KEY TEXT VALUE.")
@click.option("-J", "--json", "as_json", is_flag=True, help="One JSON object per line.")
@click.option("--grep", metavar="REGEX", help="Only records whose key or value matches.")
@click.option("--where", metavar="EXPR", help='Only records for which this holds: value.amount > 100 and key =~ "^eu".')
@click.option(
    "--isolation",
    type=click.Choice(ISOLATIONS),
    default="read_committed",
    help="read_uncommitted: open and aborted transactions too.",
)
@click.option("--schema", "has_schema", is_flag=True, help="Show values as JSON, by the schemas that they name.")
@registry_option
def consume(
    settings: Settings,
    topics: tuple[str, ...],
    span: str | None,
    count: int | None,
    exit_at_end: bool,
    group: str | None,
    partitions: tuple[int, ...],
    format_text: str | None,
    key_delimiter: str | None,
    as_json: bool,
    grep: str | None,
    where: str | None,
    isolation: str,
    has_schema: bool,
    registry: str | None,
    registry_ca: str | None,
) -> None:
    """Print the records of TOPIC to stdout, values only unless -f, -K or -J say otherwise.

    \b
      ottla consume orders -o -10 -e              the last ten of each partition
      ottla consume orders -o @-15m -J | jq .key  since a quarter of an hour ago
      ottla consume orders -g billing             as a member of a group
      ottla consume orders --schema               values written with a schema registry, as JSON
      ottla consume orders --where 'value.total > 100 and headers.region == "eu"'
    """
    if group is not None:
        _require_group_can(span, partitions)
    plan = Plan(
        topics=list(dict.fromkeys(topics)),
        span=Span(START) if span is None else parse_span(span),
        group=group,
        partitions=sorted(set(partitions)),
        count_max=count,
        stop_at_end=exit_at_end,
        isolation=isolation,
        printer=choose_printer(settings, format_text, key_delimiter, as_json),
        accepts=choose_filter(grep, where),
    )
    if has_schema:
        from ottla.cli.records.decoded import decoding_plan

        plan = decoding_plan(plan, client_of(registry, registry_ca))
    Reader(Cluster(settings), plan).run()


def _require_group_can(span: str | None, partitions: Sequence[int]) -> None:
    if partitions:
        raise click.UsageError("-p and -g exclude each other: a group shares out the partitions itself.")
    if span is not None and parse_span(span).first.kind not in (Kind.START, Kind.END):
        raise click.UsageError(
            "with -g, -o is only start or end (for a group without commits): move a group with `ottla group seek`."
        )
    if span is not None and parse_span(span).until is not None:
        raise click.UsageError("a span and -g exclude each other.")


# -- what to print -------------------------------------------------------------------------------------------------


def choose_printer(settings: Settings, format_text: str | None, key_delimiter: str | None, as_json: bool) -> Printer:
    from ottla.cli.records.record_format import compile_printer, unescape

    if sum((format_text is not None, key_delimiter is not None, as_json)) > 1:
        raise click.UsageError("-f, -K and -J exclude each other.")
    if format_text is not None:
        return compile_printer(format_text)
    if as_json or settings.output == "json":
        import json

        from ottla.cli.records.record_json import to_json

        return lambda message: json.dumps(to_json(message), ensure_ascii=False).encode() + b"\n"
    if settings.output == "yaml":
        from ottla.cli.records.record_json import to_json
        from ottla.cli.yaml_text import to_yaml

        return lambda message: b"---\n" + to_yaml(to_json(message)).encode()
    if key_delimiter is not None:
        delimiter = unescape(key_delimiter, "-K")
        return lambda message: (message.key() or b"") + delimiter + (message.value() or b"") + b"\n"
    return lambda message: (message.value() or b"") + b"\n"


def choose_filter(grep: str | None, where: str | None) -> Filter:
    filters: list[Filter] = []
    if grep is not None:
        filters.append(_grep(grep))
    if where is not None:
        filters.append(_where(where))
    return lambda message: all(accepts(message) for accepts in filters)


def _grep(text: str) -> Filter:
    try:
        search = re.compile(text.encode()).search
    except re.error as error:
        raise click.UsageError(f"--grep: '{text}' is not a regular expression: {error}.") from None
    return lambda message: search(message.value() or b"") is not None or search(message.key() or b"") is not None


def _where(text: str) -> Filter:
    from ottla.common.where import Record, WhereError, compile_where

    try:
        holds = compile_where(text)
    except WhereError as error:
        raise click.UsageError(f"--where: {error}") from None

    def accepts(message: Any) -> bool:
        return holds(
            Record(
                topic=message.topic(),
                partition=message.partition(),
                offset=message.offset(),
                timestamp=message.timestamp()[1],
                key=message.key(),
                value=message.value(),
                headers=message.headers() or (),
            )
        )

    return accepts
