"""`ottla schema list` and `get`."""

from __future__ import annotations

import json
from collections.abc import Iterable

import click

from ottla.cli.output import show, table
from ottla.cli.schema.address import client_of, registry_option
from ottla.cli.settings import Settings, command


@command("list")
@click.option("--deleted", is_flag=True, help="Those that were deleted softly, too.")
@registry_option
def list_subjects(settings: Settings, deleted: bool, registry: str | None, registry_ca: str | None) -> None:
    """List the subjects of a registry, each with its latest version.

    \b
      ottla schema list
      ottla schema list --registry https://me:secret@registry.example.com
    """
    client = client_of(registry, registry_ca)
    latest = client.get("schemas", deleted=deleted, latestOnly=True)
    rows = [
        {
            "subject": row["subject"],
            "version": row["version"],
            "id": row["id"],
            "type": row.get("schemaType", "AVRO"),
            "deleted": bool(row.get("deleted")),
        }
        for row in latest
    ]
    shown = [
        (row["subject"], row["version"], row["id"], row["type"] + ("  deleted" if row["deleted"] else ""))
        for row in rows
    ]
    show(settings, rows, lambda: table(("subject", "version", "id", "type"), shown))


@command("get")
@click.argument("name", metavar="SUBJECT|ID")
@click.option("--version", "number", metavar="N", default="latest", help="Of the subject [latest].")
@registry_option
def get(settings: Settings, name: str, number: str, registry: str | None, registry_ca: str | None) -> None:
    """Print a schema: the latest version of SUBJECT, or the one with this ID.

    \b
      ottla schema get orders-value
      ottla schema get orders-value --version 3
      ottla schema get 17
    """
    client = client_of(registry, registry_ca)
    by_id = name.isdecimal()
    found = client.get("schemas", "ids", name) if by_id else client.get("subjects", name, "versions", number)
    show(settings, found, lambda: _lines(found["schema"]))


def _lines(text: str) -> Iterable[str]:
    """JSON is easier to read on many lines."""
    try:
        text = json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except ValueError:
        pass
    return text.rstrip("\n").splitlines()
