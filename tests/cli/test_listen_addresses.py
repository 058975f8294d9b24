"""Every option that says where to listen refuses what is no address, before anything begins."""

from __future__ import annotations

import click
import pytest

from ottla.cli.listen_address import ListenAddress
from tests.cli.command_tree import verbs

# They take what a file of settings takes too: several listeners, URLs. Whoever reads the settings judges them.
OF_SETTINGS = {"start --listen", "connect start --listen", "connect standalone --listen"}


def places_to_listen() -> dict[str, click.Parameter]:
    return {
        f"{' '.join(path)} {parameter.opts[0]}": parameter
        for path, command in verbs().items()
        for parameter in command.params
        if "HOST:PORT" in (parameter.make_metavar(click.Context(command)), parameter.type.name)
        and parameter.opts[0] not in ("-b", "--bootstrap")
    }


def test_all_of_them_know_an_address() -> None:
    found = places_to_listen()
    assert {"start --metrics", "streams run --http", "console --listen", "cluster up --metrics"} <= found.keys()
    assert {name for name, one in found.items() if not isinstance(one.type, ListenAddress)} == OF_SETTINGS


@pytest.mark.parametrize(
    "text", ["nowhere", "127.0.0.1:", "127.0.0.1:99999", "a b:80", "1.2.3.4:-1", "http://h:80", ""]
)
def test_what_is_none_is_refused(text: str) -> None:
    for name, option in places_to_listen().items():
        if name not in OF_SETTINGS:
            with pytest.raises(click.UsageError, match=f"{option.opts[0]} is '{text}', expected HOST:PORT"):
                option.type.convert(text, option, None)


def test_others_reach_a_service_without_a_login_only_where_somebody_said_so() -> None:
    assert ListenAddress(any_host=True).convert(":80", None, None) == ":80"
    with pytest.raises(click.UsageError):
        ListenAddress().convert(":80", None, None)
    assert ListenAddress().convert("8080", None, None) == "8080"
    with pytest.raises(click.UsageError):
        ListenAddress(port_min=1).convert("h:0", None, None)
