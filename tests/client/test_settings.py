"""`kafka.` options: what is used, what is accepted, what is refused and in which words."""

from __future__ import annotations

import pytest

from ottla.client.access.security import Security, Tls
from ottla.client.address import ClusterAddress
from ottla.client.settings import parse_address, parse_settings
from ottla.common.errors import OttlaError

SERVERS = {"kafka.bootstrap.servers": "one:9092,two:9093"}


def test_the_defaults_read_committed_records() -> None:
    settings = parse_settings(SERVERS)
    assert settings.bootstrap_servers == "one:9092,two:9093"
    assert settings.is_committed_only
    assert settings.check_crcs


def test_settings_of_a_java_client_are_understood_in_any_case() -> None:
    settings = parse_settings({**SERVERS, "KAFKA.Fetch.Max.Bytes": "1000", "kafka.isolation.level": "read_uncommitted"})
    assert settings.fetch_bytes_max == 1_000
    assert not settings.is_committed_only


def test_settings_without_a_counterpart_are_accepted() -> None:
    assert parse_settings({**SERVERS, "kafka.max.poll.records": "7", "kafka.group.id": "g"}) == parse_settings(SERVERS)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "kafka.bootstrap.servers is missing"),
        ({"kafka.bootstrap.servers": "  "}, "kafka.bootstrap.servers is missing"),
        ({"kafka.bootstrap.servers": "one"}, "'one', which is not of the form host:port"),
        ({"kafka.bootstrap.servers": "one:9092,two:0"}, "'two:0', which is not of the form host:port"),
        ({**SERVERS, "kafka.auto.offset.reset": "latest"}, "use the option startingOffsets"),
        ({**SERVERS, "kafka.key.deserializer": "x"}, "keys are always bytes"),
        ({**SERVERS, "kafka.enable.auto.commit": "true"}, "offsets are kept by Spark"),
        ({**SERVERS, "kafka.security.protocol": "TLS"}, "one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL, not 'TLS'"),
        ({**SERVERS, "kafka.ssl.truststore.locations": "x"}, "did you mean ssl.truststore.location?"),
        ({**SERVERS, "kafka.isolation.level": "serializable"}, "read_committed or read_uncommitted"),
        ({**SERVERS, "kafka.fetch.max.bytes": "-1"}, "wants a whole number above 0, not '-1'"),
        ({**SERVERS, "kafka.fetch.max.byte": "1"}, "did you mean kafka.fetch.max.bytes?"),
        ({**SERVERS, "kafka.check.crcs": "maybe"}, "true or false"),
        ({**SERVERS, "kafka.transaction.timeout.ms": "1 min"}, "transaction.timeout.ms wants a whole number above 0"),
    ],
)
def test_bad_settings_are_refused_in_one_sentence(options: dict[str, str], words: str) -> None:
    with pytest.raises(OttlaError) as refused:
        parse_settings(options)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


def test_an_address_is_named_with_or_without_the_prefix() -> None:
    secured = ClusterAddress("one:9092", Security(Tls(ca_location="/ca.pem")))
    assert parse_address("one:9092", {"security.protocol": "ssl", "ssl.ca.location": "/ca.pem"}) == secured
    assert parse_address("one:9092", {"kafka.Security.Protocol": "SSL", "kafka.ssl.ca.location": "/ca.pem"}) == secured
    assert parse_address("one:9092") == ClusterAddress("one:9092")
    assert parse_address("one:9092", {"kafka.bootstrap.servers": "one:9092"}) == ClusterAddress("one:9092")
    with pytest.raises(OttlaError, match=r"bootstrap is one:9092, but bootstrap.servers is two:9092"):
        parse_address("one:9092", {"bootstrap.servers": "two:9092"})
