"""Keys and other values without fields: a struct of one column called `value` is written as the value itself."""

from __future__ import annotations

from typing import Any

import httpx
import pyarrow as pa
import pytest

from ottla.common.errors import OttlaError
from ottla.schemas.columns import decoder_for
from ottla.schemas.encoding import encoder_for, is_plain, registered_for
from ottla.schemas.registered import AVRO, JSON, PROTOBUF, Registered
from ottla.schemas.registry import SchemaRegistry
from ottla.testing import Broker, Registry

NOWHERE = SchemaRegistry("http://127.0.0.1:9")
PROTO = 'syntax = "proto3"; message M { int32 a = 1; }'


@pytest.mark.parametrize(
    ("kind", "text", "plain"),
    [
        (AVRO, '"string"', True),
        (AVRO, '["null","long"]', True),
        (AVRO, '{"type":"record","name":"R","fields":[]}', False),
        (JSON, '{"type":"string"}', True),
        (JSON, '{"type":"object"}', False),
        (JSON, "true", False),
        (PROTOBUF, PROTO, False),
    ],
)
def test_it_is_told_which_schemas_have_no_fields(kind: str, text: str, plain: bool) -> None:
    assert is_plain(Registered(1, kind, text, (), "s")) is plain


@pytest.mark.parametrize(("kind", "text"), [(AVRO, '"string"'), (JSON, '{"type":"string"}')])
def test_a_value_without_fields_is_written_and_read_back_and_null_stays_null(kind: str, text: str) -> None:
    schema = Registered(7, kind, text, (), "s")
    rows = pa.array([{"value": "Ada"}, None, {"value": ""}], pa.struct([("value", pa.string())]))
    encoded = encoder_for(NOWHERE, schema, ("value",)).encode(rows)
    assert encoded[1].as_py() is None
    assert encoded[0].as_py()[:5] == b"\x00\x00\x00\x00\x07" and b"Ada" in encoded[0].as_py()
    decoded, reasons = decoder_for(NOWHERE, schema).decode(encoded)
    assert decoded.to_pylist() == rows.to_pylist() and reasons.null_count == 3


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (pa.string(), '"string"'),
        (pa.int64(), '"long"'),
        (
            pa.struct([("a", pa.int32())]),
            '{"type":"record","name":"orders_key","fields":[{"name":"a","type":["null","int"],"default":null}]}',
        ),
    ],
)
def test_a_key_is_registered_as_the_type_that_it_is(kind: Any, text: str, broker: Broker) -> None:
    name = f"keys-{kind}".replace("<", "-").replace(">", "-").replace(": ", "-")
    with Registry(broker.bootstrap_servers, topic=f"_{name}", group=name) as registry:
        there = SchemaRegistry(registry.url)
        seen = registered_for(there, kind, "orders", part="key", registers=False)
        assert (seen.id, seen.subject) == (0, "orders-key"), "nothing is registered by a look"
        made = registered_for(there, kind, "orders", part="key")
        assert made.text == text and made.subject == "orders-key"
        assert httpx.get(f"{registry.url}/subjects", trust_env=False).json() == ["orders-key"]


def test_several_topics_have_no_subject_in_common() -> None:
    with pytest.raises(OttlaError, match=r"registry.of\(\"orders-key\"\)"):
        NOWHERE.for_topic("a,b", "key")
