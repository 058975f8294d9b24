"""`ottla registry password`: what to write into the file of users instead of the password."""

from __future__ import annotations

import sys

import click

from ottla.cli.registry.extra import needs_registry
from ottla.cli.settings import Settings


@click.command("password")
@click.pass_obj
def password(settings: Settings) -> None:
    """Print the hash of a password, for the file that `ottla registry start --users` reads.

    It is asked for at a terminal, or read as the first line of stdin.

    \b
      echo 'secret' | ottla registry password
    """
    settings.refuse_dry_run("registry password")
    with needs_registry():
        from ottla.common.passwords import hashed
    if sys.stdin.isatty():
        given = click.prompt("password", hide_input=True, confirmation_prompt=True, err=True)
    else:
        given = sys.stdin.readline().rstrip("\n")
    if not given:
        raise click.UsageError("there is no password on stdin.")
    click.echo(hashed(given))
