"""Rows become batches that every reader understands, and both encoders make the same ones."""

from __future__ import annotations

import random
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest

from ottla.kernel import checksum, compressing, encode_pure, patching
from ottla.records import batch as v2
from ottla.records.record import read_records

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


def encoders() -> list[ModuleType]:
    try:
        from ottla.kernel import _encode
    except ImportError:
        return [encode_pure]
    return [encode_pure, _encode]


@pytest.fixture(params=encoders(), ids=lambda module: module.__name__.rpartition(".")[2])
def kernel(request: pytest.FixtureRequest) -> Any:
    return request.param


class Rows:
    """Columns with everything that a record can have."""

    def __init__(self, seed: int, count: int, value_bytes_max: int = 300) -> None:
        rng = random.Random(seed)

        def field(size_max: int) -> bytes | None:
            return None if rng.random() < 0.1 else bytes([rng.randrange(4)]) * rng.randrange(size_max)

        self.keys = [field(20) for _ in range(count)]
        self.values = [field(value_bytes_max) for _ in range(count)]
        self.times = [1_700_000_000_000 + rng.randrange(-100_000, 100_000) for _ in range(count)]
        self.headers = [
            None
            if rng.random() < 0.5
            else [{"key": "ä" * rng.randrange(4), "value": field(9)} for _ in range(rng.randrange(4))]
            for _ in range(count)
        ]

    def arrays(self) -> tuple[Any, Any, Any, Any]:
        return (
            pa.array(self.keys, pa.binary()),
            pa.array(self.values, pa.binary()),
            pa.array(self.headers, HEADERS),
            pa.array(self.times, pa.int64()),
        )

    def records(self) -> list[tuple[Any, ...]]:
        headers = [tuple((one["key"], one["value"]) for one in row or ()) for row in self.headers]
        return list(zip(self.keys, self.values, self.times, headers, strict=True))


def decoded(batches: list[tuple[int, bytes, int]]) -> dict[int, list[tuple[Any, ...]]]:
    found: dict[int, list[tuple[Any, ...]]] = {}
    for slot, data, count in batches:
        header = v2.read_header(data)
        assert header.crc == v2.compute_crc(data, 0, len(data))
        assert header.size == len(data)
        records = list(read_records(data))
        assert (header.record_count, header.last_offset_delta) == (count, count - 1) == (len(records), len(records) - 1)
        assert [one.offset for one in records] == list(range(count))
        assert header.max_timestamp == max(one.timestamp for one in records)
        found.setdefault(slot, []).extend((one.key, one.value, one.timestamp, one.headers) for one in records)
    return found


@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)
def test_all_rows_come_out_as_they_went_in(kernel: Any, codec: int) -> None:
    rows = Rows(codec, 3_000)
    keys, values, headers, times = rows.arrays()
    slots = kernel.route(keys, None, None, [0], [3], [1])
    encoder = kernel.BatchEncoder(codec=codec, batch_bytes=100_000)
    found = decoded(encoder.append(slots, keys, values, headers, times) + encoder.finish())
    expected: dict[int, list[tuple[Any, ...]]] = {}
    for slot, record in zip(slots, rows.records(), strict=True):
        expected.setdefault(slot, []).append(record)
    assert found == expected


def codecs_of(kernel: Any, codec: int, values: list[bytes]) -> list[int]:
    """That the batches have which an encoder makes of these values, one each."""
    encoder = kernel.BatchEncoder(codec=codec, batch_bytes=1)
    column = pa.array(values, pa.binary())
    nothing, times = pa.nulls(len(values), pa.binary()), pa.array([0] * len(values), pa.int64())
    slots = kernel.route(nothing, None, None, [0], [1], [0])
    batches = encoder.append(slots, nothing, column, None, times) + encoder.finish()
    (found,) = decoded(batches).values()
    assert [value for _, value, _, _ in found] == values
    return [v2.read_header(data).attributes & v2.CODEC_MASK for _, data, _ in batches]


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_what_does_not_get_smaller_is_left_as_it_is_and_what_does_is_compressed_again(kernel: Any, codec: int) -> None:
    noise, text = random.Random(codec).randbytes(200_000), b"the same again " * 14_000
    assert codecs_of(kernel, codec, [text, noise, noise, text, text]) == [codec, 0, 0, codec, codec]
    assert codecs_of(kernel, codec, [noise[:100], text]) == [0, codec]


def test_after_a_batch_that_does_not_get_smaller_only_a_part_of_the_next_is_tried(monkeypatch: Any) -> None:
    tried: list[int] = []

    def told(codec: int, data: Any, level: int | None) -> bytes:
        tried.append(len(data))
        return compress(codec, data, level)

    compress = compressing.compress
    monkeypatch.setattr(compressing, "compress", told)
    noise = random.Random(1).randbytes(500_000)
    compressor = compressing.Compressor(compressing.LZ4, None)
    assert [compressor.compress(noise) for _ in range(3)] == [None] * 3
    assert tried[0] == len(noise)
    assert sum(tried[1:]) < len(noise) / 5


def test_slices_without_nulls_and_without_headers_are_read_from_where_they_begin(kernel: Any) -> None:
    keys = pa.array([b"%d" % number for number in range(100)], pa.binary())[37:]
    times = pa.array(range(100), pa.int64())[37:]
    slots = kernel.route(keys, None, None, [0], [1], [0])
    encoder = kernel.BatchEncoder()
    encoder.append(slots, keys, keys, None, times)
    (found,) = decoded(encoder.finish()).values()
    assert found == [(b"%d" % number, b"%d" % number, number, ()) for number in range(37, 100)]


def test_sliced_headers_are_read_from_where_they_begin(kernel: Any) -> None:
    rows = Rows(5, 200)
    keys, values, headers, times = (column[61:] for column in rows.arrays())
    encoder = kernel.BatchEncoder()
    encoder.append(kernel.route(keys, None, None, [0], [1], [0]), keys, values, headers, times)
    (found,) = decoded(encoder.finish()).values()
    assert found == rows.records()[61:]


def test_batches_stay_below_the_limit_unless_one_record_is_larger(kernel: Any) -> None:
    values = pa.array([b"x" * 400] * 10 + [b"y" * 5_000] + [b"z"], pa.binary())
    nothing = pa.nulls(12, pa.binary())
    times = pa.array([0] * 12, pa.int64())
    encoder = kernel.BatchEncoder(batch_bytes=1_000)
    slots = kernel.route(nothing, None, None, [0], [1], [0])
    done = encoder.append(slots, nothing, values, None, times) + encoder.finish()
    assert [count for _, _, count in done] == [2, 2, 2, 2, 2, 1, 1]


def test_what_is_open_is_bounded_over_all_partitions(kernel: Any) -> None:
    count = 1_000
    keys = pa.array([b"%d" % number for number in range(count)], pa.binary())
    values = pa.array([b"x" * 100] * count, pa.binary())
    times = pa.array([0] * count, pa.int64())
    encoder = kernel.BatchEncoder(open_bytes=10_000)
    done = encoder.append(kernel.route(keys, None, None, [0], [50], [0]), keys, values, None, times)
    assert sum(number for _, _, number in done) > count * 0.85
    done += encoder.finish()
    assert sum(number for _, _, number in done) == count


def test_keys_go_where_java_clients_send_them(kernel: Any) -> None:
    # murmur2 as Kafka's own test of it has them.
    known = {b"21": -973932308, b"foobar": -790332482, b"a-little-bit-long-string": -985981536,
             b"a-little-bit-longer-string": -1486304829, b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
             b"abc": 479470107}  # fmt: skip
    for key, number in known.items():
        assert encode_pure.murmur2(key) == number & 0xFFFFFFFF
        assert kernel.partition_for_key(key, 7) == (number & 0x7FFFFFFF) % 7


def test_rows_go_to_the_partition_they_name_then_by_key_then_stay_together(kernel: Any) -> None:
    keys = pa.array([b"21", None, b"21", None], pa.binary())
    named = pa.array([2, 1, None, None], pa.int32())
    topics = pa.array([0, 1, 1, 1], pa.int32())
    slots = kernel.route(keys, named, topics, [0, 10], [3, 5], [0, 4])
    assert list(slots) == [2, 11, 10 + kernel.partition_for_key(b"21", 5), 14]


@pytest.mark.parametrize("partition", [-1, 3])
def test_a_partition_that_is_not_there_is_refused(kernel: Any, partition: int) -> None:
    with pytest.raises(ValueError, match=f"partition {partition} is not one of the 3"):
        kernel.route(pa.nulls(1, pa.binary()), pa.array([partition], pa.int32()), None, [0], [3], [0])


@pytest.mark.parametrize("size", [1, 2, 100, 70_000])
def test_a_producer_is_put_into_a_batch_with_a_valid_checksum(kernel: Any, size: int) -> None:
    values = pa.array([b"v" * size], pa.binary())
    encoder = kernel.BatchEncoder()
    encoder.append(kernel.route(values, None, None, [0], [1], [0]), values, values, None, pa.array([1], pa.int64()))
    ((_, data, _),) = encoder.finish()
    batch = bytearray(data)
    patching.patch(batch, 2**40 + 7, 12, 2**31 - 1)
    header = v2.read_header(batch)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (2**40 + 7, 12, 2**31 - 1)
    assert header.crc == v2.compute_crc(batch, 0, len(batch))
    assert header.is_transactional
    patching.take_out_of_transaction(batch)
    taken_out = v2.read_header(batch)
    assert not taken_out.is_transactional and taken_out.producer_id == header.producer_id
    assert taken_out.crc == v2.compute_crc(batch, 0, len(batch)) != header.crc


def test_damage_on_the_way_is_still_seen_after_patching() -> None:
    values = pa.array([b"value"], pa.binary())
    encoder = encode_pure.BatchEncoder()
    encoder.append(
        encode_pure.route(values, None, None, [0], [1], [0]), values, values, None, pa.array([1], pa.int64())
    )
    ((_, data, _),) = encoder.finish()
    batch = bytearray(data)
    batch[-1] ^= 1
    patching.patch(batch, 1, 1, 1)
    assert v2.read_header(batch).crc != v2.compute_crc(batch, 0, len(batch))


def test_the_checksum_is_crc_32c() -> None:
    assert checksum.crc32c(b"123456789") == 0xE3069283
