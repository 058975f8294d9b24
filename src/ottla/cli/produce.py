"""`ottla produce`: records from arguments, files or stdin to a topic.

Input is split at newlines (`-D` for another delimiter), each piece becomes a record by `-K`, `-f`, `-J` or as it is.
Keys go to the partition that Java clients choose (murmur2), not librdkafka's own default, so that one key is in one
place whoever wrote it. What was read before a mistake or Ctrl-C is still sent.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any, cast

import click

from ottla.cli.connection import Cluster, require_topic_name
from ottla.cli.error_sentences import sentence
from ottla.cli.given import GivenPath
from ottla.cli.name_completion import complete_topic
from ottla.cli.output import notice, plural
from ottla.cli.records.record_format import Draft, compile_reader, parse_header, unescape
from ottla.cli.registry.extra import needs_registry
from ottla.cli.schema.address import client_of, registry_option
from ottla.cli.settings import Settings, at_least, command, parse_assignment
from ottla.common.errors import OttlaError

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
FLUSH_S_MAX = 30.0
READ_BYTES = 1 << 16

LineReader = Callable[[bytes], Draft | None]

acks_option = click.option(
    "--acks",
    type=click.Choice(("0", "1", "all")),
    default="all",
    help="Which replicas must have a record: none, the leader, all in sync [all].",
)


@command("produce", changes=True)
@click.argument("topic", shell_complete=complete_topic)
@click.argument("values", nargs=-1, metavar="[VALUE]...")
@click.option(
    "-F",
    "--file",
    "files",
    multiple=True,
    metavar="FILE",
    type=GivenPath(str),
    help="Read records from FILE ('-' is stdin).",
)
@click.option("-k", "--key", metavar="KEY", help="The key of every record.")
@click.option("-K", "--key-delimiter", metavar="TEXT", help="Each record is KEY TEXT VALUE.")
@click.option("-f", "--format", "format_text", metavar="FORMAT", help=r"Of the input: %k %s %p %T %h, as in '%k\t%s'.")
@click.option("-J", "--json", "as_json", is_flag=True, help="Each line is JSON as `consume -J` prints it.")
@click.option("-D", "--delimiter", default=r"\n", metavar="TEXT", help=r"What ends a record in the input [\n].")
@click.option("-H", "--header", "headers", multiple=True, metavar="NAME=VALUE", help="A header for every record.")
@click.option("-p", "--partition", type=at_least(0), help="Send to this partition.")
@click.option("-z", "--compression", type=click.Choice(CODECS), help="Codec of the batches [none].")
@click.option("--null", "empty_is_null", is_flag=True, help="Send an empty key or value as null (a tombstone).")
@acks_option
@click.option("-q", "--quiet", is_flag=True, help="No summary on stderr.")
@click.option("--schema", "has_schema", is_flag=True, help="Values are JSON, written by the schema of TOPIC-value.")
@registry_option
def produce(
    settings: Settings,
    topic: str,
    values: tuple[str, ...],
    files: tuple[str, ...],
    key: str | None,
    key_delimiter: str | None,
    format_text: str | None,
    as_json: bool,
    delimiter: str,
    headers: tuple[str, ...],
    partition: int | None,
    compression: str | None,
    empty_is_null: bool,
    acks: str,
    quiet: bool,
    has_schema: bool,
    registry: str | None,
    registry_ca: str | None,
) -> None:
    """Send records to TOPIC: the VALUEs, or else each line of stdin or of the files.

    \b
      ottla produce orders "hello" "world"
      ottla produce orders -k user-7 -H source=shell < orders.txt
      seq 1000 | ottla produce numbers -z zstd
      ottla produce users -f '%k\\t%s' -F users.tsv
      ottla produce users -k user-7 --null ""        a tombstone
      ottla produce orders --schema '{"euro": 7}'    as Avro, JSON or Protobuf, by the latest schema of orders-value
    """
    require_topic_name(topic)
    if values and files:
        raise click.UsageError("give the records as arguments or in files, not both.")
    if not delimiter:
        raise click.UsageError("-D needs at least one character.")
    common = Common(
        key=None if key is None else key.encode(),
        partition=partition,
        headers=[parse_header("=".join(parse_assignment(header, "-H")).encode()) for header in headers],
        empty_is_null=empty_is_null,
    )
    reader = _choose_reader(key, key_delimiter, format_text, as_json)
    if has_schema:
        reader = _with_schema(reader, f"{topic}-value", registry, registry_ca)
    pieces = _pieces(values, files, unescape(delimiter, "-D"))
    if settings.dry_run:
        _count_only(common.apply(_drafts(pieces, reader)), topic)
        return
    sender = Sender(Cluster(settings), topic, acks, compression)
    try:
        sender.send(common.apply(_drafts(pieces, reader)))
    finally:
        sender.finish()
        if not quiet and (sender.arrived or sender.complete):
            notice(sender.summary())
    sender.require_all_arrived()


# -- from input to records -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Common:
    """What the flags say about every record; a record's own fields win."""

    key: bytes | None
    partition: int | None
    headers: list[tuple[str, bytes | None]]
    empty_is_null: bool

    def apply(self, drafts: Iterable[Draft]) -> Iterator[Draft]:
        for draft in drafts:
            if draft.key is None:
                draft.key = self.key
            if draft.partition is None:
                draft.partition = self.partition
            if self.headers:
                draft.headers = [*self.headers, *(draft.headers or ())]
            if self.empty_is_null:
                draft.key, draft.value = draft.key or None, draft.value or None
            yield draft


def _choose_reader(key: str | None, key_delimiter: str | None, format_text: str | None, as_json: bool) -> LineReader:
    if sum((format_text is not None, key_delimiter is not None, as_json)) > 1:
        raise click.UsageError("-f, -K and -J exclude each other.")
    if key is not None and key_delimiter is not None:
        raise click.UsageError("-k and -K exclude each other: the key is in the input, or the same for all.")
    if format_text is not None:
        return compile_reader(format_text)
    if as_json:
        from ottla.cli.records.record_json import from_json

        return from_json
    if key_delimiter is not None:
        parting = unescape(key_delimiter, "-K")
        if not parting:
            raise click.UsageError("-K needs a text that parts key and value, such as ':' or '\\t'.")
        return lambda line: _split_key(line, parting)
    return lambda line: Draft(value=line)


def _with_schema(reader: LineReader, subject: str, registry: str | None, ca: str | None) -> LineReader:
    """The same records, their values encoded. A null stays one."""
    import json

    with needs_registry():
        from ottla.schemas.rows import Values

        encode = Values(client_of(registry, ca)).encoder(subject)

    def encoded(line: bytes) -> Draft | None:
        draft = reader(line)
        if draft is not None and draft.value:
            try:
                value = json.loads(draft.value)
            except ValueError as error:
                raise OttlaError(f"a value is no JSON, so it and what follows were not sent: {error}.") from None
            draft.value = encode(value)
        return draft

    return encoded


def _split_key(line: bytes, parting: bytes) -> Draft | None:
    key, found, value = line.partition(parting)
    return Draft(key=key, value=value) if found else None


def _pieces(values: Iterable[str], files: Iterable[str], delimiter: bytes) -> Iterator[tuple[str, bytes]]:
    """The raw records, each with the place it came from, for the sentence about a bad one."""
    if values:
        yield from ((f"argument {n}", value.encode("utf-8", "surrogateescape")) for n, value in enumerate(values, 1))
        return
    for name in files or ("-",):
        if name == "-":
            if sys.stdin.isatty():
                notice("one record per line; Ctrl-D ends", colour="cyan")
            yield from _split("stdin", cast(BufferedReader, sys.stdin.buffer), delimiter)
            continue
        with _open(name) as stream:
            yield from _split(name, stream, delimiter)


def _open(name: str) -> BufferedReader:
    try:
        return Path(name).open("rb")
    except OSError as error:
        raise OttlaError(f"cannot read {name}: {error.strerror}.") from None


def _split(name: str, stream: BufferedReader, delimiter: bytes) -> Iterator[tuple[str, bytes]]:
    try:
        yield from _pieces_of(name, stream, delimiter)
    except OSError as error:
        raise OttlaError(f"cannot read {name}: {error.strerror}.") from None


def _pieces_of(name: str, stream: BufferedReader, delimiter: bytes) -> Iterator[tuple[str, bytes]]:
    if delimiter == b"\n":
        yield from ((f"{name} line {n}", line.removesuffix(b"\n")) for n, line in enumerate(stream, 1))
        return
    yield from ((f"{name} record {n}", piece) for n, piece in enumerate(_split_at(stream, delimiter), 1))


def _split_at(stream: BufferedReader, delimiter: bytes) -> Iterator[bytes]:
    rest = b""
    while chunk := stream.read1(READ_BYTES):
        *whole, rest = (rest + chunk).split(delimiter)
        yield from whole
    if rest := rest.removesuffix(b"\n"):
        yield rest


def _drafts(pieces: Iterable[tuple[str, bytes]], reader: LineReader) -> Iterator[Draft]:
    for place, piece in pieces:
        draft = reader(piece)
        if draft is None:
            shown = piece[:60].decode("utf-8", "replace")
            raise OttlaError(f"{place} does not fit the format, so it and what follows were not sent: {shown}")
        yield draft


def _count_only(drafts: Iterable[Draft], topic: str) -> None:
    count = size = 0
    for draft in drafts:
        count += 1
        size += len(draft.key or b"") + len(draft.value or b"")
    click.echo(f"would send {plural(count, 'record')} ({size:,} bytes) to {topic}")


# -- sending -------------------------------------------------------------------------------------------------------


class Sender:
    """A producer that counts what arrived and keeps the first failure."""

    def __init__(self, cluster: Cluster, topic: str, acks: str, compression: str | None) -> None:
        cluster.reach()
        self._cluster = cluster
        self._topic = topic
        settings = {
            "acks": acks,
            "partitioner": "murmur2_random",
            "topic.metadata.propagation.max.ms": "5000",
            "message.timeout.ms": "30000",
            "linger.ms": "5",
        }
        if compression is not None:
            settings["compression.type"] = compression
        self._producer = cluster.producer(settings)
        self._arrived: Counter[int] = Counter()
        self._failure: Any = None
        self._waiting = 0
        self.complete = False  # all input was read, and nothing failed

    def send(self, drafts: Iterable[Draft]) -> None:
        for draft in drafts:
            self._send_one(draft)
            self._producer.poll(0)
            self._raise_failure()
        self._flush()
        self.complete = self._failure is None

    def _send_one(self, draft: Draft) -> None:
        from confluent_kafka import KafkaException

        more: dict[str, Any] = {}
        if draft.partition is not None:
            more["partition"] = draft.partition
        if draft.timestamp is not None:
            more["timestamp"] = draft.timestamp
        while True:
            try:
                self._producer.produce(
                    self._topic, draft.value, draft.key, headers=draft.headers, on_delivery=self._delivered, **more
                )
                return
            except BufferError:  # the local queue is full: let it drain
                self._producer.poll(0.1)
                self._cluster.check()
                self._raise_failure()
            except KafkaException as error:
                raise OttlaError(self._explain(error.args[0])) from None

    def _delivered(self, error: Any, message: Any) -> None:
        if error is None:
            self._arrived[message.partition()] += 1
        elif self._failure is None:
            self._failure = error

    def finish(self) -> None:
        """Whatever ended the reading, Ctrl-C included: what was read is sent."""
        self._flush()
        self._waiting = len(self._producer)

    def _flush(self) -> None:
        """A moment at a time, so that Ctrl-C ends it, and no longer than there is hope."""
        deadline = time.monotonic() + FLUSH_S_MAX
        while self._failure is None and self._producer.flush(0.1) and time.monotonic() < deadline:
            pass

    def require_all_arrived(self) -> None:
        self._raise_failure()
        if self._waiting:
            raise OttlaError(f"{plural(self._waiting, 'record')} could not be sent in time: is the cluster healthy?")

    @property
    def arrived(self) -> int:
        return self._arrived.total()

    def summary(self) -> str:
        return f"sent {plural(self.arrived, 'record')} to {self._topic}{self._spread()}"

    def _spread(self) -> str:
        if len(self._arrived) < 2:
            return "".join(f", partition {index}" for index in self._arrived)
        return f", {len(self._arrived)} partitions"

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise OttlaError(self._explain(self._failure))

    def _explain(self, error: Any) -> str:
        if error.name() in ("_UNKNOWN_TOPIC", "UNKNOWN_TOPIC_OR_PART"):
            return str(self._cluster.no_topic(self._topic))
        if error.name() == "_UNKNOWN_PARTITION":
            return f"topic '{self._topic}' has no such partition: see `ottla topic describe {self._topic}`."
        return sentence(error, f"topic '{self._topic}'")
