"""Precedence on the command line: file, then -X, then flags."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.common.config import Source, load_from_cli
from ottla.common.errors import OttlaError


@pytest.fixture
def server_properties(tmp_path: Path) -> Path:
    path = tmp_path / "server.properties"
    path.write_text("node.id=4\nnum.partitions=2\nlog.dirs=/file\nlisteners=PLAINTEXT://:9092\n")
    return path


def test_flags_win_over_overrides_over_the_file(server_properties: Path) -> None:
    config = load_from_cli(
        server_properties, ["/flag", "/flag2"], "127.0.0.1:0", {"num.partitions": "3", "log.dirs": "/x"}
    )
    assert config.node_id == 4
    assert config.num_partitions == 3
    assert config.data_dirs == ("/flag", "/flag2")
    assert [(e.host, e.port) for e in config.endpoints] == [("127.0.0.1", 0)]


@pytest.mark.parametrize(
    ("listen", "host", "port"),
    [("9095", "", 9095), (":9095", "", 9095), ("[::1]:9095", "::1", 9095), ("PLAINTEXT://h:1", "h", 1)],
)
def test_ways_to_say_where_to_listen(listen: str, host: str, port: int) -> None:
    assert [(e.host, e.port) for e in load_from_cli(listen=listen).endpoints] == [(host, port)]


@pytest.mark.parametrize("listen", ["nowhere", "nowhere:", "a b:1", "1.2.3.4:99999", "99999", "[::1]", "a:1,b:2", ""])
def test_a_wrong_listen_flag_is_told_by_its_name(listen: str) -> None:
    with pytest.raises(OttlaError) as caught:
        load_from_cli(listen=listen)
    assert str(caught.value) == f"Invalid address {listen!r} in --listen: expected HOST:PORT."


def test_a_listen_flag_replaces_the_advertised_address_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text(
        "listeners=A://:9092\nlistener.security.protocol.map=A:PLAINTEXT,PLAINTEXT:PLAINTEXT\n"
        "advertised.listeners=A://far:9092\n"
    )
    assert load_from_cli(path, listen="localhost:1").endpoints[0].advertised_host == "localhost"


def test_an_advertised_address_given_beside_the_listen_flag_counts(tmp_path: Path) -> None:
    """That of the file goes with the file's listeners; one on the command line was meant."""
    file = tmp_path / "server.properties"
    file.write_text("listeners=PLAINTEXT://:9092\nadvertised.listeners=PLAINTEXT://of-the-file:9092\n")
    replaced = load_from_cli(file, listen="127.0.0.1:19092")
    assert [one.advertised_host for one in replaced.endpoints] != ["of-the-file"]
    given = load_from_cli(
        file, listen="127.0.0.1:19092", overrides={"advertised.listeners": "PLAINTEXT://outside:29092"}
    )
    (endpoint,) = given.endpoints
    assert (endpoint.port, endpoint.advertised_host, endpoint.advertised_port) == (19092, "outside", 29092)


@pytest.mark.parametrize(
    ("advertise", "host", "port"),
    [
        ("broker.example.com", "broker.example.com", 9095),
        ("broker.example.com:29092", "broker.example.com", 29092),
        ("[fd00::1]:29092", "fd00::1", 29092),
        ("[fd00::1]", "fd00::1", 9095),
    ],
)
def test_the_advertise_flag_is_a_static_setting(tmp_path: Path, advertise: str, host: str, port: int) -> None:
    file = tmp_path / "server.properties"
    file.write_text("listeners=PLAINTEXT://:9095\nadvertised.listeners=PLAINTEXT://of-the-file:9092\n")
    for listen in (None, "0.0.0.0:9095"):
        config = load_from_cli(file, listen=listen, advertise=advertise)
        (endpoint,) = config.endpoints
        assert (endpoint.advertised_host, endpoint.advertised_port) == (host, port)
        assert next(config.explain("advertised.listeners")).source is Source.STATIC_BROKER_CONFIG


@pytest.mark.parametrize(
    ("listen", "advertise", "sentence"),
    [
        (None, "a:b", "expected HOST or HOST:PORT"),
        (None, "a:99999", "'a:99999' in --advertise: expected HOST or HOST:PORT"),
        (None, ":9092", "expected HOST or HOST:PORT"),
        (None, "0.0.0.0", "cannot use 0.0.0.0"),
        (None, "[::]:9092", "cannot use ::"),
        ("PLAINTEXT://:1,SECOND://:2", "host", "for one listener"),
    ],
)
def test_a_wrong_advertise_flag_is_one_sentence(listen: str | None, advertise: str, sentence: str) -> None:
    protocols = {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SECOND:PLAINTEXT"}
    with pytest.raises(OttlaError) as caught:
        load_from_cli(listen=listen, overrides=protocols, advertise=advertise)
    assert sentence in str(caught.value)
