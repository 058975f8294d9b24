"""`ottla log dump`: what stands in segment files, indexes, producer snapshots and epoch checkpoints.

Reads files, so it is the second verb (after `start`) that imports the storage layer. Items are printed as they are
read, one line each; with `--output json` one JSON object per line, so that a large log needs little memory.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ottla.cli.given import GivenPath
from ottla.cli.output import paint, plural
from ottla.cli.records.record_json import bytes_field
from ottla.cli.settings import OUTPUTS, Settings
from ottla.common.errors import OttlaError

if TYPE_CHECKING:
    from ottla.records.record import Record
    from ottla.storage.dump import BatchDump

EPOCHS_FILE = "leader-epoch-checkpoint"
LOG_FILE = re.compile(r"\d{20}\.(log|index|timeindex|txnindex|snapshot)\b")
SHOWN_BYTES_MAX = 200

Item = dict[str, Any]


@click.command("dump")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=GivenPath(exists=True))
@click.option("-r", "--records", is_flag=True, help="The records of each batch too.")
@click.option("--verify", is_flag=True, help="Also compare each index with the log beside it.")
@click.option("--output", type=click.Choice(OUTPUTS), help="table, or json: one object per line.")
@click.pass_obj
def dump(settings: Settings, paths: tuple[Path, ...], records: bool, verify: bool, output: str | None) -> None:
    """Show the files of a log: a partition's folder, or single files.

    Exit status 1 when something is damaged.

    \b
      ottla log dump /var/lib/ottla/orders-0
      ottla log dump -r 00000000000000000000.log
      ottla log dump --verify 00000000000000000000.index
    """
    output = output or settings.output
    if output == "yaml":
        raise click.UsageError("log dump prints a table or json.")
    problems = 0
    for path, kind in _files(paths):
        if output == "table":
            sys.stdout.write(paint(str(path), bold=True) + "\n")
        for item in _items(path, kind, records, verify):
            problems += item.get("problem") is not None
            text = _line(item) if output == "table" else json.dumps({"file": str(path), **item}, ensure_ascii=False)
            sys.stdout.write(text + "\n")
    if problems:
        raise OttlaError(f"{plural(problems, 'problem')} found: see the lines marked with 'problem'.")


def _files(paths: Iterable[Path]) -> Iterator[tuple[Path, str]]:
    """Each file with what it is; of a folder those that belong to its log."""
    from ottla.storage.dump import DumpError

    for path in paths:
        if not path.is_dir():
            try:
                yield path, _kind(path)
            except DumpError as error:
                raise OttlaError(f"{error}.") from None
            continue
        found = [file for file in sorted(path.iterdir()) if file.name == EPOCHS_FILE or LOG_FILE.match(file.name)]
        if not found:
            raise OttlaError(f"{path} holds no files of a log: give a partition's folder, such as DATA_DIR/orders-0.")
        yield from ((file, _kind(file)) for file in found)


def _kind(path: Path) -> str:
    from ottla.storage.dump import kind_of

    return EPOCHS_FILE if path.name == EPOCHS_FILE else kind_of(path)


def _items(path: Path, kind: str, records: bool, verify: bool) -> Iterator[Item]:
    from ottla.storage.dump import DumpError, index_problems

    try:
        yield from _readers(records)[kind](path)
        if verify and kind in (".index", ".timeindex"):
            yield from (
                {"kind": "verification", "problem": f"does not fit the log: {problem}"}
                for problem in index_problems(path)
            )
    except (DumpError, ValueError) as error:
        yield {"kind": "file", "problem": str(error)}


def _readers(records: bool) -> dict[str, Callable[[Path], Iterable[Item]]]:
    from ottla.storage import dump

    def entries(kind: str, read: Callable[[Path], Iterable[Any]]) -> Callable[[Path], Iterable[Item]]:
        return lambda path: ({"kind": kind, **entry._asdict()} for entry in read(path))

    return {
        ".log": lambda path: map(_batch, dump.dump_log(path, records=records)),
        ".index": entries("offset_index", dump.dump_offset_index),
        ".timeindex": entries("time_index", dump.dump_time_index),
        ".txnindex": entries("aborted_transaction", dump.dump_txn_index),
        ".snapshot": entries("producer", dump.dump_snapshot),
        EPOCHS_FILE: lambda path: (
            {"kind": "leader_epoch", "epoch": epoch, "start_offset": start}
            for epoch, start in dump.dump_leader_epochs(path)
        ),
    }


def _batch(batch: BatchDump) -> Item:
    header = batch.header
    item: Item = {
        "kind": "batch",
        "position": batch.position,
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "records": header.record_count,
        "bytes": header.size,
        "codec": batch.codec,
        "max_timestamp": header.max_timestamp,
        "leader_epoch": header.leader_epoch,
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
        "transactional": header.is_transactional,
        "marker": batch.marker,
        "problem": batch.problem,
    }
    if batch.records:
        item["content"] = [_record(record) for record in batch.records]
    return item


def _record(record: Record) -> Item:
    return {
        "offset": record.offset,
        "timestamp": record.timestamp,
        **bytes_field("key", record.key),
        **bytes_field("value", record.value),
        "headers": [{"key": name, **bytes_field("value", value)} for name, value in record.headers],
    }


# -- for people ----------------------------------------------------------------------------------------------------


def _line(item: Item) -> str:
    problem = item.get("problem")
    text = _batch_line(item) if item["kind"] == "batch" else _entry_line(item)
    if problem is not None:
        text += "  " + paint(f"problem: {problem}", "red")
    return "\n".join([text, *map(_record_line, item.get("content", ()))])


def _batch_line(item: Item) -> str:
    parts = [
        f"  at {item['position']}",
        f"offsets {item['base_offset']}-{item['last_offset']}",
        plural(item["records"], "record"),
        f"{item['bytes']} B",
        item["codec"],
        _time(item["max_timestamp"]),
        f"epoch {item['leader_epoch']}",
    ]
    if item["producer_id"] >= 0:
        parts.append(f"producer {item['producer_id']}/{item['producer_epoch']} sequence {item['base_sequence']}")
    if item["transactional"]:
        parts.append("transactional")
    if item["marker"]:
        parts.append(f"{item['marker']} marker")
    return "  ".join(parts)


def _entry_line(item: Item) -> str:
    shown = ((name, value) for name, value in item.items() if name not in ("kind", "problem"))
    return "  " + "  ".join(f"{name} {_time(value) if name == 'timestamp' else value}" for name, value in shown)


def _record_line(record: Item) -> str:
    headers = "".join(f"  {header['key']}={_shown(header, 'value')}" for header in record["headers"])
    content = f"{_shown(record, 'key')}  {_shown(record, 'value')}{headers}"
    return f"    {record['offset']}  {_time(record['timestamp'])}  {content}"


def _shown(item: Item, name: str) -> str:
    """Text in quotes, other bytes in base64, both cut where they are long."""
    if f"{name}_base64" in item:
        text = f"base64:{item[f'{name}_base64']}"
    elif item[name] is None:
        return "null"
    else:
        text = json.dumps(item[name], ensure_ascii=False)
    return text if len(text) <= SHOWN_BYTES_MAX else f"{text[:SHOWN_BYTES_MAX]}... ({len(text)} characters)"


def _time(ms: int) -> str:
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
    except (ValueError, OverflowError, OSError):
        return str(ms)
