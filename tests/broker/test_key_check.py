"""Records without a key do not enter a compacted topic, whichever walk finds them and wherever it runs."""

from __future__ import annotations

import pytest

from ottla.broker.partitions import key_check
from ottla.kernel import walk
from ottla.protocol.messages import ProduceResponse
from ottla.records.compression import Codec
from ottla.records.record import Record, build_batch
from ottla.testing import Broker
from tests.support.hostile_batches import now_ms, raw_body
from tests.support.raw_client import RawClient

SMALL, LARGE = 10, 2_000


@pytest.fixture(params=["compiled", "pure"])
def client(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    if request.param == "pure":
        monkeypatch.setattr(walk, "IS_COMPILED", False)
    elif not walk.IS_COMPILED:
        pytest.skip("the kernel is not compiled here: run `python hatch_build.py`")
    with Broker() as broker:
        broker.create_topic("compacted", configs={"cleanup.policy": "compact"})
        with RawClient.to(broker.bootstrap_servers) as client:
            yield client


def produced(client: RawClient, batch: bytes | bytearray) -> ProduceResponse.PartitionProduceResponse:
    return client.produce("compacted", bytes(batch))


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
@pytest.mark.parametrize("count", [SMALL, LARGE])
def test_keys_are_asked_for(client: RawClient, count: int, codec: Codec) -> None:
    assert 20 * SMALL < key_check._INLINE_BYTES_MAX < 20 * LARGE
    records = [Record(n, now_ms(), b"k", bytes(20)) for n in range(count)]
    assert produced(client, build_batch(records, codec=codec)).error_code == 0
    keyless = [one._replace(key=None) if one.offset % 2 else one for one in records]
    line = produced(client, build_batch(keyless, codec=codec))
    assert line.error_code == 87
    assert line.error_message == f"{count // 2} records of a compacted topic have no key"
    named = [one.batch_index for one in line.record_errors]
    assert named == [n for n in range(count) if n % 2][:100]
    assert produced(client, raw_body(bytes(20 * count), count)).error_code == 2
