"""Numbers that do not fit: every one that the command takes has limits, so that none fails somewhere below."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from ottla.cli.main import run
from ottla.testing import Broker
from tests.cli.command_tree import verbs

HUGE = "9" * 30


def numeric_parameters() -> Iterator[tuple[str, click.Parameter]]:
    for path, command in verbs().items():
        for parameter in command.params:
            if _is_number(parameter.type):
                yield f"{' '.join(path)} {parameter.opts[-1]}", parameter


def _is_number(kind: click.ParamType) -> bool:
    return isinstance(kind, (click.types.IntParamType, click.types.FloatParamType)) or kind.name == "N"


def test_the_walk_finds_numbers() -> None:
    assert {"topic create --partitions", "consume --count", "trace record partition", "cluster up --base-port"} <= dict(
        numeric_parameters()
    ).keys()


def test_every_number_has_a_limit() -> None:
    taken = []
    for name, parameter in numeric_parameters():
        for text in (HUGE, f"-{HUGE}", "inf", "nan", "1e400"):
            try:
                parameter.type.convert(text, parameter, None)
                taken.append(f"{name} {text}")
            except click.BadParameter:
                pass
    assert not taken


@pytest.mark.parametrize(
    "arguments",
    [
        ("topic", "create", "large", "-p", "90000"),
        ("topic", "create", "large", "-r", "10000"),
        ("topic", "alter", "numbers", "-p", "100000"),
        ("produce", "numbers", "-p", "2147483647", "x"),
        ("consume", "numbers", "-o", HUGE, "-e"),
        ("partition", "move", "numbers", "--to", "99999999999"),
        ("partition", "move", "numbers:99999999999", "--to", "1"),
        ("txn", "abort", "numbers-99999999999"),
        ("group", "seek", "readers", "-t", "numbers:99999999999", "--to", "end"),
    ],
    ids=" ".join,
)
def test_what_does_not_fit_is_told_in_one_sentence(
    ottla_broker: Broker, arguments: tuple[str, ...], capfd: pytest.CaptureFixture[str]
) -> None:
    command = ["-b", ottla_broker.bootstrap_servers, "-y"]
    assert run([*command, "topic", "create", "numbers", "--if-not-exists"]) == 0
    capfd.readouterr()
    status = run([*command, *arguments])
    out, err = capfd.readouterr()
    assert status in (1, 2), out
    assert err.startswith("ottla: ")
    assert len(err.strip().splitlines()) == 1, err
