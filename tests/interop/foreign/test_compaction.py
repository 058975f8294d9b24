"""Compacted topics as other clients see them: the newest value of each key stays, keyless records are refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.interop.foreign.agents import AgentError
from tests.interop.foreign.clients import Client, Seen, Sent
from tests.interop.foreign.topics import create_topic
from tests.interop.foreign.waiting import eventually
from tests.support.process import BrokerProcess

pytestmark = [pytest.mark.foreign, pytest.mark.xdist_group("foreign")]
LAST_OFFSET = 40
EAGER = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.bytes": "1048576"}


def test_every_client_sees_the_newest_value_of_each_key(
    broker: BrokerProcess, clients: Callable[[str], Client], name: str
) -> None:
    writer = clients("confluent")
    create_topic(broker, name, config=EAGER)
    filler = bytes(100_000)
    for generation in range(8):  # 4 MB, so that segments close behind it and become cleanable
        writer.produce(broker.bootstrap, name, [Sent(b"key-%d" % key, b"%d" % generation + filler) for key in range(5)])
    writer.produce(broker.bootstrap, name, [Sent(b"last", b"end")])

    def read(client: str) -> list[Seen]:
        seen: list[Seen] = []
        while not seen or seen[-1].offset < LAST_OFFSET:
            seen = clients(client).consume(broker.bootstrap, name, len(seen) + 1)
        return seen

    compacted = eventually(lambda: read("confluent"), lambda seen: len(seen) < 25, within_s=40)
    assert [one.offset for one in compacted] == sorted({one.offset for one in compacted})
    newest = {one.key: (one.value or b"")[:1] for one in compacted}
    assert newest == {**{b"key-%d" % key: b"7" for key in range(5)}, b"last": b"e"}
    for client in ("java", "kafkajs", "franz-go"):
        assert {one.key: (one.value or b"")[:1] for one in read(client)} == newest, client


def test_a_record_without_a_key_is_refused(broker: BrokerProcess, clients: Callable[[str], Client], name: str) -> None:
    java = clients("java")
    create_topic(broker, name, config=EAGER)
    with pytest.raises(AgentError, match="InvalidRecordException"):
        java.produce(broker.bootstrap, name, [Sent(None, b"no key")])
    java.produce(broker.bootstrap, name, [Sent(b"key", b"value")])
