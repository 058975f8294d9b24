"""Where a password comes from: a file, standard input, or a prompt; never an argument, which `ps` and the history of a
shell show to others."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from ottla.cli.given import GivenPath
from ottla.common.errors import OttlaError

PASSWORD_CHARS_MAX = 1024

password_file_option = click.option(
    "--password-file",
    metavar="FILE",
    type=GivenPath(str),
    help="Read the password from a file; - is standard input [ask for it].",
)


def read_password(file: str | None, user: str) -> str:
    """The first line of the file, or what somebody types twice. Raises OttlaError."""
    if file is not None:
        password = _first_line(file)
    elif sys.stdin.isatty():
        password = _asked_for(user)
    else:
        raise OttlaError(
            "there is nobody to ask for the password: give it with --password-file FILE, or with --password-file - on "
            "standard input."
        )
    if not password:
        raise OttlaError("the password is empty.")
    if len(password) > PASSWORD_CHARS_MAX or not password.isprintable():
        raise OttlaError(f"the password is longer than {PASSWORD_CHARS_MAX} characters, or has some that do not print.")
    return password


def _first_line(file: str) -> str:
    try:
        if file == "-":
            return sys.stdin.readline().rstrip("\r\n")
        with Path(file).open() as lines:
            return lines.readline().rstrip("\r\n")
    except OSError as error:
        raise OttlaError(f"cannot read the password from {file}: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise OttlaError(f"the password in {file} is not text.") from None


def _asked_for(user: str) -> str:
    from getpass import getpass

    first = getpass(f"password of {user}: ")
    if getpass("once more: ") != first:
        raise OttlaError("the two are not the same: nothing was changed.")
    return first
