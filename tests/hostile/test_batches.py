"""Batches that are small on the wire and large inside, in all four codecs, where the broker must open them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from ottla.common.errors import ErrorCode
from ottla.records.compression import Codec, compress
from ottla.records.record import Record, encode_record
from tests.hostile.conftest import Mistreated
from tests.support.brokers import OttlaProcess
from tests.support.hostile_batches import HOSTILE, UNREADABLE, raw_body
from tests.support.raw_client import RawClient

pytestmark = pytest.mark.xdist_group("hostile")

# As far as each codec goes within max.message.bytes.
BOMB_BYTES = {Codec.GZIP: 300 << 20, Codec.SNAPPY: 18 << 20, Codec.LZ4: 200 << 20, Codec.ZSTD: 1 << 30}
COMPRESSED = list(BOMB_BYTES)


def repeated(codec: Codec, unit: bytes, count: int) -> bytes:
    """`unit` over and over, compressed without ever being in memory: frames of each codec may follow one another."""
    if codec is Codec.SNAPPY:
        return compress(codec, unit * count)
    units_per_frame = max(1, (8 << 20) // len(unit))
    frame = compress(codec, unit * units_per_frame)
    return frame * -(-count // units_per_frame)


def bomb(codec: Codec) -> bytearray:
    """Zeros without end."""
    return raw_body(repeated(codec, bytes(1 << 20), BOMB_BYTES[codec] >> 20), 1, codec=codec)


def crowd(codec: Codec) -> bytearray:
    """Hundreds of thousands of records in a few hundred kilobytes: all of them right, so each must be looked at."""
    count = 300_000 if codec in (Codec.GZIP, Codec.ZSTD) else 150_000
    body = bytearray()
    for number in range(count):
        encode_record(body, Record(number, 0, b"k", b""), 0, 0)
    return raw_body(compress(codec, body), count, codec=codec)


@pytest.fixture(scope="module")
def explosives() -> Iterator[dict[tuple[str, Codec], bytearray]]:
    """Made once, before anybody is watched: making them takes longer than refusing them."""
    yield {(make.__name__, codec): make(codec) for make in (bomb, crowd) for codec in COMPRESSED}


@pytest.mark.parametrize("topic", ["compacted", "recompressed", "uncompressed"])
@pytest.mark.parametrize("codec", COMPRESSED, ids=lambda one: one.name.lower())
@pytest.mark.parametrize("kind", ["bomb", "crowd"])
def test_bombs(
    victim: OttlaProcess,
    mistreated: Mistreated,
    explosives: dict[tuple[str, Codec], bytearray],
    topic: str,
    codec: Codec,
    kind: str,
) -> None:
    batch = explosives[kind, codec]
    assert len(batch) < 1_048_588, "small enough to be opened"
    peak = [victim.rss_bytes()]
    watching = threading.Event()

    def watch() -> None:
        while not watching.wait(0.02):
            peak.append(victim.rss_bytes())

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    with mistreated(growth_bytes_max=400 << 20), RawClient.to(victim.bootstrap, timeout_s=100) as client:
        line = client.produce(topic, batch)
    watching.set()
    watcher.join()
    if line.error_code:
        expected = (ErrorCode.CORRUPT_MESSAGE, ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.INVALID_RECORD)
        assert ErrorCode(line.error_code) in expected
    else:  # a crowd is merely large; and a bomb below the limit is small again in another codec
        assert kind == "crowd" or topic == "recompressed"
    # The decompressed limit, twice over for the copy, and what the broker had.
    assert max(peak) < 600 << 20, f"{max(peak) >> 20} MB"


def test_many_bombs_at_once(
    victim: OttlaProcess, mistreated: Mistreated, explosives: dict[tuple[str, Codec], bytearray]
) -> None:
    """Ten clients, each with a crowd of records that takes a good part of a second to walk through."""
    from tests.support.raw_client import produce_request

    with mistreated(growth_bytes_max=700 << 20) as neighbour:
        clients = [RawClient.to(victim.bootstrap, timeout_s=60) for _ in range(10)]
        for client in clients:
            client.send(produce_request("compacted", explosives["crowd", Codec.ZSTD]), 9)
        rounds = neighbour.rounds
        time.sleep(3)
        assert neighbour.rounds > rounds + 10, "the good client goes on meanwhile"
        for client in clients:
            client.close()
    deadline = time.monotonic() + 60
    while victim.rss_bytes() > 500 << 20 and time.monotonic() < deadline:
        time.sleep(0.2)
    assert victim.rss_bytes() < 500 << 20, "the memory is given back"


@pytest.mark.parametrize("topic", ["plain", "compacted", "recompressed"])
def test_all_hostile_batches_in_a_row(victim: OttlaProcess, mistreated: Mistreated, topic: str) -> None:
    with mistreated(), RawClient.to(victim.bootstrap) as client:
        for make, _ in HOSTILE.values():
            assert client.produce(topic, make()).error_code != 0
        for batch in UNREADABLE.values():
            line = client.produce(topic, batch)
            assert line.error_code != 0 or topic != "compacted"
