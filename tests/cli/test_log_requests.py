"""`ottla log requests`: brokers log requests for a while."""

from __future__ import annotations

import pytest

from ottla.testing import Broker
from tests.cli.command import Cli


@pytest.fixture
def cli(request: pytest.FixtureRequest) -> Cli:
    with Broker() as broker:
        yield Cli(broker.bootstrap_servers)


def test_it_is_switched_on_and_off(cli: Cli) -> None:
    said = cli.ok("log", "requests", "--client", "a", "--topic", "t", "--for", "2m").out
    assert said == "broker 1 logs client=a or topic=t for 120 seconds\n"
    settings = {one["name"]: one["value"] for one in cli.ok("config", "get", "broker", "1", "--output", "json").data}
    assert settings["ottla.request.log"] == "client=a,topic=t"
    assert int(settings["ottla.request.log.until.ms"]) > 0
    assert "logs no requests any more" in cli.ok("log", "requests", "--off").out
    assert "ottla.request.log" not in cli.ok("config", "get", "broker", "1").out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "say which requests"),
        (("--client", "a", "--off"), "say which requests"),
        (("--client", "a", "--for", "2d"), "is not a time up to an hour"),
        (("--client", "a,b"), "a comma or a space"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: tuple[str, ...], sentence: str) -> None:
    assert sentence in Cli("127.0.0.1:1").fails(2, "log", "requests", *arguments)
