"""`ottla schema register`, `check` and `delete`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from ottla.cli.given import GivenPath
from ottla.cli.output import confirm, done, notice, show
from ottla.cli.schema.address import client_of, registry_option
from ottla.cli.settings import Settings, command
from ottla.common.errors import OttlaError

TYPES = ("avro", "json", "protobuf")
_BY_ENDING = {".avsc": "AVRO", ".json": "JSON", ".proto": "PROTOBUF"}


def _schema_options(function: Any) -> Any:
    function = click.option(
        "--reference",
        "references",
        multiple=True,
        metavar="NAME=SUBJECT:VERSION",
        help="What it refers to; repeatable.",
    )(function)
    function = click.option(
        "--type",
        "kind",
        type=click.Choice(TYPES),
        help="Of the schema [by the ending: .avsc, .json, .proto; else avro].",
    )(function)
    function = click.argument("file", metavar="FILE", type=GivenPath(str))(function)
    return click.argument("subject")(function)


def _body(file: str, kind: str | None, references: tuple[str, ...]) -> dict[str, Any]:
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text()
    except OSError as error:
        raise OttlaError(f"cannot read {file}: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise OttlaError(f"{file} is no text.") from None
    body: dict[str, Any] = {"schema": text}
    body["schemaType"] = kind.upper() if kind else _BY_ENDING.get(Path(file).suffix.lower(), "AVRO")
    if references:
        body["references"] = [_reference(reference) for reference in references]
    return body


def _reference(text: str) -> dict[str, Any]:
    name, _, rest = text.partition("=")
    subject, _, version = rest.rpartition(":")
    if not name or not subject or not version.isdecimal():
        raise click.UsageError(f"--reference takes NAME=SUBJECT:VERSION, not '{text}'.")
    return {"name": name, "subject": subject, "version": int(version)}


@command("register", changes=True)
@_schema_options
@click.option("--normalize", is_flag=True, help="Texts that mean the same are one schema.")
@registry_option
def register(
    settings: Settings,
    subject: str,
    file: str,
    kind: str | None,
    references: tuple[str, ...],
    normalize: bool,
    registry: str | None,
    registry_ca: str | None,
) -> None:
    """Register the schema in FILE ('-' is stdin) under SUBJECT. With --dry-run it is only checked.

    \b
      ottla schema register orders-value order.avsc
      ottla schema register users-value user.proto --reference place.proto=places:1
    """
    client, body = client_of(registry, registry_ca), _body(file, kind, references)
    if settings.dry_run:
        _check(settings, client, subject, body)
        return
    reply = client.post(body, "subjects", subject, "versions", normalize=normalize)
    version = reply.get("version")
    if version is None:  # registries before 8 name the id only
        version = client.post(body, "subjects", subject, normalize=normalize)["version"]
    data = {"subject": subject, "version": version, "id": reply["id"]}
    done(settings, data, f"{subject} version {version} has id {reply['id']}")


@command("check")
@_schema_options
@registry_option
def check(
    settings: Settings,
    subject: str,
    file: str,
    kind: str | None,
    references: tuple[str, ...],
    registry: str | None,
    registry_ca: str | None,
) -> None:
    """Say whether SUBJECT would accept the schema in FILE; exit status 1 and the reasons if not.

    \b
      ottla schema check orders-value order.avsc && git commit
    """
    _check(settings, client_of(registry, registry_ca), subject, _body(file, kind, references))


def _check(settings: Settings, client: Any, subject: str, body: dict[str, Any]) -> None:
    reply = client.post(body, "compatibility", "subjects", subject, "versions", verbose=True)
    fits, messages = reply["is_compatible"], reply.get("messages") or []
    show(
        settings,
        {"subject": subject, "compatible": fits, "messages": messages},
        lambda: [f"{subject} would accept it"] if fits else messages,
    )
    if not fits:
        notice(f"ottla: {subject} would refuse it", colour="red")
        click.get_current_context().exit(1)


@command("delete", changes=True, asks=True)
@click.argument("subject")
@click.option("--version", "number", metavar="N", help="Only this version [all].")
@click.option("--permanent", is_flag=True, help="For good; it has to be deleted softly before.")
@registry_option
def delete(
    settings: Settings,
    subject: str,
    number: str | None,
    permanent: bool,
    registry: str | None,
    registry_ca: str | None,
) -> None:
    """Delete SUBJECT, or one version of it. Records that were written with it can still be read, unless --permanent.

    \b
      ottla schema delete orders-value --version 2
      ottla schema delete orders-value && ottla schema delete orders-value --permanent
    """
    client = client_of(registry, registry_ca)
    what = subject if number is None else f"version {number} of {subject}"
    how = " for good, so that its records cannot be read any more" if permanent else ""
    if settings.dry_run:
        click.echo(f"would delete {what}{how}")
        return
    confirm(settings, f"delete {what}{how}?")
    where = ("subjects", subject) if number is None else ("subjects", subject, "versions", number)
    reply = client.delete(*where, permanent=permanent)
    gone = reply if isinstance(reply, list) else [reply]
    listed = ", ".join(map(str, gone))
    done(settings, {"subject": subject, "deleted": gone}, f"deleted version {listed} of {subject}")
