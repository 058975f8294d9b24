"""A broker that anybody on the network may use says so when it starts, in one line."""

from __future__ import annotations

import logging

import pytest

from ottla.testing import Broker

LOGINS = {"sasl.enabled.mechanisms": "SCRAM-SHA-256", "ottla.first.users": "SCRAM-SHA-256=[name=ada,password=secret]"}


@pytest.mark.parametrize(
    ("properties", "told"),
    [
        ({"listeners": "PLAINTEXT://0.0.0.0:0"}, 1),
        ({"listeners": "PLAINTEXT://:0"}, 1),
        ({"listeners": "PLAINTEXT://127.0.0.1:0"}, 0),
        ({"listeners": "PLAINTEXT://localhost:0"}, 0),
        ({"listeners": "SASL_PLAINTEXT://0.0.0.0:0", **LOGINS}, 0),
    ],
)
def test_who_is_let_in_without_a_question(
    properties: dict[str, str], told: int, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "ottla.server"), Broker(properties):
        pass
    said = [record.getMessage() for record in caplog.records if "open to everybody" in record.getMessage()]
    assert len(said) == told
    assert all("\n" not in one and "ottla security init" in one for one in said)
