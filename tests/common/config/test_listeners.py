"""Addresses to listen on and to advertise."""

from __future__ import annotations

import pytest

from ottla.common.config import BrokerConfig, Listener, SecurityProtocol
from ottla.common.errors import OttlaError


def _load(**properties: str) -> tuple[Listener, ...]:
    return BrokerConfig.load({name.replace("_", "."): text for name, text in properties.items()}).endpoints


def test_the_default_is_every_interface_on_9092() -> None:
    assert _load() == (Listener("PLAINTEXT", SecurityProtocol.PLAINTEXT, "", 9092, "", 9092),)


def test_several_listeners_with_names_of_their_own() -> None:
    inside, outside = _load(
        listeners="inside://10.0.0.1:9092,OUTSIDE://[::]:9094",
        advertised_listeners="OUTSIDE://broker.example.com:19094",
        listener_security_protocol_map="INSIDE:PLAINTEXT, outside:plaintext",
        inter_broker_listener_name="INSIDE",
    )
    assert (inside.name, inside.host, inside.port) == ("INSIDE", "10.0.0.1", 9092)
    assert (inside.advertised_host, inside.advertised_port) == ("10.0.0.1", 9092)
    assert (outside.host, outside.port) == ("::", 9094)
    assert (outside.advertised_host, outside.advertised_port) == ("broker.example.com", 19094)


@pytest.mark.parametrize("wildcard", ["", "0.0.0.0", "[::]", "[0:0:0:0:0:0:0:0]"])
def test_a_wildcard_address_leaves_the_advertised_host_to_the_server(wildcard: str) -> None:
    assert [e.advertised_host for e in _load(listeners=f"PLAINTEXT://{wildcard}:9092")] == [""]


def test_one_port_for_an_ipv4_and_an_ipv6_address() -> None:
    protocols = "A:PLAINTEXT,B:PLAINTEXT"
    assert len(_load(listeners="A://127.0.0.1:9092,B://[::1]:9092", listener_security_protocol_map=protocols)) == 2
    assert len(_load(listeners="A://127.0.0.1:0,B://127.0.0.1:0", listener_security_protocol_map=protocols)) == 2
    with pytest.raises(OttlaError, match="same port 9092"):
        _load(listeners="A://127.0.0.1:9092,B://127.0.0.2:9092", listener_security_protocol_map=protocols)


@pytest.mark.parametrize(
    ("properties", "sentence"),
    [
        ({"listeners": "localhost:9092"}, "expected NAME://HOST:PORT"),
        ({"listeners": "PLAINTEXT://localhost:99999"}, "expected NAME://HOST:PORT"),
        ({"listeners": "PLAINTEXT://a:1,PLAINTEXT://b:2"}, "PLAINTEXT twice"),
        ({"listeners": "SASL_SSL://:9093"}, "GSSAPI is not"),
        ({"listeners": "CLIENTS://:9092"}, "add CLIENTS:PLAINTEXT to listener.security.protocol.map"),
        ({"listeners": ""}, "at least one"),
        ({"listeners": "C://:9093", "controller.listener.names": "C"}, "no listener for clients"),
        ({"advertised.listeners": "OTHER://a:1"}, "names OTHER, which listeners does not"),
        ({"advertised.listeners": "PLAINTEXT://0.0.0.0:9092"}, "cannot use 0.0.0.0"),
        ({"advertised.listeners": "PLAINTEXT://[::]:9092"}, "cannot use ::"),
        ({"advertised.listeners": "PLAINTEXT://[0:0:0:0:0:0:0:0]:9092"}, "cannot use 0:0:0:0:0:0:0:0"),
        ({"listener.security.protocol.map": "PLAINTEXT:TLS"}, "expected NAME:PROTOCOL"),
        ({"inter.broker.listener.name": "NOPE"}, "not among the listeners"),
    ],
)
def test_a_mistake_is_one_clear_sentence(properties: dict[str, str], sentence: str) -> None:
    with pytest.raises(OttlaError) as caught:
        BrokerConfig.load(properties)
    assert sentence in str(caught.value)
