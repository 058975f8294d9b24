"""One record from a form to a topic, with an ordinary producer: partitioned by key as Java's clients do it."""

from __future__ import annotations

import json
import re
from typing import Any

from ottla.client.schema_registry import RegistryClient
from ottla.common.errors import OttlaError
from ottla.console.web.requests import Form

_TIMEOUT_S = 15.0
# A string, or space outside of strings.
_SPACE = re.compile(r'("(?:[^"\\]|\\.)*")|[ \t\r\n]+')


def produce(
    bootstrap: str, client: dict[str, str], topic: str, form: Form, registry: RegistryClient | None
) -> tuple[int, int]:
    """Partition and offset. Raises OttlaError."""
    from confluent_kafka import KafkaException, Producer

    key = None if form.has("no_key") or not form.text("key") else form.text("key").encode()
    value = None if form.has("tombstone") else _value(topic, form, registry)
    partition = form.number("partition", "a partition") if form.stripped("partition") else -1
    outcome: list[Any] = []
    try:
        producer = Producer(
            {
                "client.id": "ottla-console",
                "partitioner": "murmur2_random",
                "message.timeout.ms": int(_TIMEOUT_S * 1000),
                "log_level": 0,
                **client,
                "bootstrap.servers": bootstrap,
            }
        )
        producer.produce(
            topic,
            value,
            key,
            partition,
            on_delivery=lambda error, message: outcome.append(error or message),
            headers=_headers(form.text("headers")),
        )
        producer.flush(_TIMEOUT_S + 1)
    except (KafkaException, BufferError, ValueError) as error:
        raise OttlaError(f"the record was not written: {error}.") from None
    if not outcome:
        raise OttlaError("the cluster did not take the record in time.")
    done = outcome[0]
    if not hasattr(done, "offset"):
        raise OttlaError(f"the record was not written: {done.str()}.")
    return int(done.partition()), int(done.offset())


def _value(topic: str, form: Form, registry: RegistryClient | None) -> bytes:
    text = form.text("value").replace("\r\n", "\n")
    how = form.text("encoding", "text")
    if how == "json":
        _tree(text)
        # As it was written, numbers and doubled names too; only the space between goes.
        return _SPACE.sub(lambda found: found[1] or "", text).encode()
    if how == "hex":
        try:
            return bytes.fromhex(text)
        except ValueError:
            raise OttlaError("the value is not hex: write two digits for each byte, as in 0a ff 00.") from None
    if how == "schema":
        if registry is None:
            raise OttlaError("there is no registry: start the console with --registry URL.")
        from ottla.schemas.rows import Values

        return Values(registry).encoder(form.stripped("subject") or f"{topic}-value")(_tree(text))
    return text.encode()


def _tree(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise OttlaError("the value is not JSON that can be read: it is nested too deep.") from None
    except ValueError as error:
        raise OttlaError(f"the value is not JSON: {error}.") from None


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no number there")


def _headers(text: str) -> list[tuple[str, bytes]]:
    found = []
    for line in text.splitlines():
        if line.strip():
            name, colon, value = line.partition(":")
            if not colon or not name.strip():
                raise OttlaError(f"a header is written as name: value, one in each line, not '{line.strip()[:60]}'.")
            found.append((name.strip(), value.strip().encode()))
    return found
