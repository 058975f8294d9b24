"""Paths, groups and addresses that are empty, as `"$UNSET"` is, are refused before anything begins."""

from __future__ import annotations

import click
import pytest

from ottla.cli.given import GivenPath
from tests.cli.command import Cli
from tests.cli.command_tree import verbs


def paths() -> dict[str, click.Parameter]:
    return {
        f"{' '.join(path)} {parameter.opts[0]}": parameter
        for path, command in verbs().items()
        for parameter in command.params
        if isinstance(parameter.type, click.Path)
        or parameter.make_metavar(click.Context(command)).strip("[].") in ("FILE", "DIR", "PATH")
    }


def test_all_of_them_are_refused_when_they_are_empty() -> None:
    found = paths()
    assert {"start --data-dir", "start --config", "registry start --users", "produce -F", "log dump paths"} <= set(
        found
    )
    assert {name for name, parameter in found.items() if not isinstance(parameter.type, GivenPath)} == set()


def test_one_that_is_empty_is_a_mistake() -> None:
    with pytest.raises(click.BadParameter, match="the path is empty"):
        GivenPath().convert("", None, None)
    assert GivenPath(str).convert("-", None, None) == "-"


@pytest.mark.parametrize(
    "arguments",
    [
        ("start", "--data-dir", ""),
        ("registry", "start", "--users", ""),
        ("topic", "list", "-b", ""),
        ("topic", "list", "--profile", ""),
        ("consume", "t", "-g", ""),
        ("group", "describe", ""),
        ("group", "lag", ""),
        ("group", "seek", "", "--to", "start"),
        ("group", "delete", "g", ""),
    ],
    ids=" ".join,
)
def test_empty_values_are_told(arguments: tuple[str, ...]) -> None:
    assert "empty" in Cli().fails(2, *arguments)
