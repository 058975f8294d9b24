"""Records whose bytes are damaged end a query with one sentence that says where they are."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("pyspark")

from ottla.client.fetching import UnreadableRecords
from ottla.common.failures import Failure, failure_in
from ottla.protocol import messages as m
from ottla.protocol.codec import Message
from ottla.records.record import Record, build_batch
from tests.spark.planned import source, values
from tests.support.scripted_broker import ScriptedBroker


def test_a_batch_that_fails_its_checksum() -> None:
    damaged = build_batch([Record(offset, 1_000, None, b"value") for offset in range(5)])
    damaged[-3] ^= 1

    def fetch(request: Any, version: int) -> Message:
        row = m.FetchResponse.PartitionData(
            partition_index=0, high_watermark=5, last_stable_offset=5, records=bytes(damaged)
        )
        topic = m.FetchResponse.FetchableTopicResponse(topic="t", partitions=[row])
        return m.FetchResponse(responses=[topic])

    with ScriptedBroker({"t": 1}, Fetch=fetch) as broker:
        reader = source(broker.bootstrap, "t")
        splits = reader.partitions({"t": {"0": 0}}, {"t": {"0": 5}})
        with pytest.raises(
            UnreadableRecords, match="partition t-0 cannot be read: the batch at offset 0 fails its checksum"
        ) as raised:
            values(reader, splits)
    assert failure_in(raised.value) is Failure.DATA
