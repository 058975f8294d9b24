"""A seeded generator of hostile frames: requests of every API, sound at first, then damaged.

A sound request uses names that exist and numbers at the edges, so that it gets past the decoder; a damaged one has bits
flipped, pieces cut out, doubled or replaced by telling values, lengths that lie. Record batches are damaged inside, and
half of them get a right CRC again so that the damage is seen by what comes after the check. One seed, one sequence.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from ottla.broker.apis import APIS
from ottla.protocol import codec
from ottla.protocol.framing import flexible_from
from ottla.records import batch as v2
from ottla.records.compression import Codec
from ottla.records.record import Record, build_batch
from tests.support.hostile_batches import HOSTILE, UNREADABLE

TOPICS = ("plain", "compacted", "recompressed", "uncompressed", "fuzz-a", "fuzz-b", "nowhere", "__consumer_offsets")
WORDS = ("", "g1", "g2", "range", "consumer", "m-1", "cleanup.policy", "retention.ms", "-1", "compact", "x" * 300, "ü")
EDGES = (0, 1, 2, 3, 7, 100, 127, 128, 255, 256, 32767, 65535, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1)
# Requests that may wait on purpose: an answer is not expected at once.
WAITING = frozenset({1, 11, 14})
# A damaged size keeps the broker waiting for bytes that never come.
LYING_SIZES = (-1, 0, 9, 2**31 - 1, 104_857_601)


class Shot(NamedTuple):
    """What goes over the wire, and whether an answer (or a closed connection) must come back."""

    wire: bytes
    api_key: int
    answered: bool


class Fuzzer:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def shot(self) -> Shot:
        rng = self.rng
        api = APIS[rng.choice(list(APIS))] if rng.random() < 0.6 else APIS[rng.choice((0, 0, 0, 1))]
        version = rng.randint(api.min_version, api.max_version)
        frame = self._produce(version) if api.key == 0 else self._request(api.key, version)
        if rng.random() < 0.75:
            frame = self._damaged(frame)
        size = rng.choice(LYING_SIZES) if rng.random() < 0.01 else len(frame)
        sound = size == len(frame) and api.key not in WAITING and api.key != 0
        return Shot(struct.pack(">i", size) + frame, api.key, sound)

    # --- sound requests

    def _header(self, key: int, version: int, flexible: bool) -> bytes:
        client_id = self.rng.choice((b"\xff\xff", b"\x00\x04fuzz", b"\x00\x00"))
        return struct.pack(">hhi", key, version, self.rng.randrange(2**31)) + client_id + (b"\x00" if flexible else b"")

    def _request(self, key: int, version: int) -> bytes:
        name = f"{APIS[key].name}Request"
        top = codec.message_class(name)
        message = self._struct(top, top, codec.definition(name)["fields"], version)
        try:
            body = bytes(codec.encode(message, version))
        except (ValueError, struct.error, OverflowError):  # a random string too long for this version
            body = self.rng.randbytes(20)
        return self._header(key, version, version >= flexible_from(name)) + body

    def _struct(self, top: Any, cls: Any, fields: list[dict[str, Any]], version: int) -> Any:
        made = cls()
        for field in fields:
            low, high = codec.version_range(field["versions"])
            if low <= version <= high:
                setattr(made, field["name"], self._value(top, field, field["type"], version))
        return made

    def _value(self, top: Any, field: dict[str, Any], kind: str, version: int) -> Any:
        rng = self.rng
        if rng.random() < 0.1 and _nullable(field, version):
            return None
        if kind.startswith("[]"):
            return [
                self._value(top, {**field, "nullable": None}, kind[2:], version)
                for _ in range(rng.choice((0, 1, 1, 2, 5)))
            ]
        if kind == "string":
            return rng.choice(TOPICS if "topic" in field["name"] or field["name"] == "name" else WORDS)
        if kind in ("bytes", "records"):
            return rng.choice((b"", b"\x00" * 8, rng.randbytes(40)))
        if kind == "uuid":
            return rng.choice((bytes(16), rng.randbytes(16)))
        if kind == "bool":
            return rng.random() < 0.5
        if kind == "float64":
            return rng.choice((0.0, -1.5, float("nan"), float("inf"), 1e308))
        bits = _BITS.get(kind)
        if bits is None:
            return self._struct(top, getattr(top, kind), field["fields"], version)
        return self._number(field["name"], bits, kind.startswith("u"))

    def _number(self, name: str, bits: int, unsigned: bool) -> int:
        if name.endswith(("wait_ms", "timeout_ms")):
            return self.rng.choice((0, 1, 50, 6000, -1))
        value = self.rng.choice(EDGES) if self.rng.random() < 0.6 else self.rng.randrange(10)
        value = value if unsigned or self.rng.random() < 0.7 else -value
        low, high = (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        return max(low, min(value, high))

    def _produce(self, version: int) -> bytes:
        request: Any = codec.message_class("ProduceRequest")
        version = max(version, 3)
        pieces = [
            request.PartitionProduceData(index=self.rng.choice((0, 0, 0, 1, -1)), records=self._batch())
            for _ in range(self.rng.choice((1, 1, 1, 2, 4)))
        ]
        data = request.TopicProduceData(name=self.rng.choice(TOPICS[:4]), topic_id=bytes(16), partition_data=pieces)
        message = request(acks=self.rng.choice((-1, 1, 0, 2)), timeout_ms=1000, topic_data=[data])
        return self._header(0, version, version >= 9) + bytes(codec.encode(message, version))

    def _batch(self) -> bytes:
        rng = self.rng
        draw = rng.random()
        if draw < 0.15:
            return bytes(rng.choice(list(HOSTILE.values()))[0]())
        if draw < 0.25:
            return bytes(rng.choice(list(UNREADABLE.values())))
        producer = rng.choice((-1, -1, 1, 2**40))
        records = [
            Record(n, 1_700_000_000_000 + n, rng.choice((None, b"k")), rng.choice((None, b"", b"v" * 30)))
            for n in range(rng.choice((1, 2, 30)))
        ]
        batch = build_batch(
            records,
            codec=rng.choice(list(Codec)),
            producer_id=producer,
            producer_epoch=-1 if producer < 0 else rng.choice((0, 1, 32767)),
            base_sequence=-1 if producer < 0 else rng.choice((0, 1, 5, 2**31 - 1)),
        )
        if rng.random() < 0.6:
            batch = bytearray(self._damaged(bytes(batch)))
            if len(batch) > v2.HEADER_SIZE and rng.random() < 0.7:
                if rng.random() < 0.8:
                    struct.pack_into(">i", batch, 8, len(batch) - v2.LOG_OVERHEAD)
                    batch[v2.MAGIC_OFFSET] = 2
                v2.restamp_crc(batch, 0, len(batch))
        return bytes(batch)

    # --- damage

    def _damaged(self, frame: bytes) -> bytes:
        damaged = bytearray(frame)
        for _ in range(self.rng.choice((1, 1, 2, 5))):
            if damaged:
                self.rng.choice(_DAMAGE)(self.rng, damaged)
        return bytes(damaged)


@cache
def _range(text: str) -> tuple[int, int]:
    return codec.version_range(text)


def _nullable(field: dict[str, Any], version: int) -> bool:
    if not field.get("nullable"):
        return False
    low, high = _range(field["nullable"])
    return low <= version <= high


def _flip_bits(rng: random.Random, data: bytearray) -> None:
    for _ in range(rng.choice((1, 2, 8))):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def _overwrite(rng: random.Random, data: bytearray) -> None:
    size = rng.choice((1, 2, 4, 8))
    value = rng.choice(EDGES) * rng.choice((1, -1)) % 2 ** (8 * size)
    at = rng.randrange(len(data))
    data[at : at + size] = value.to_bytes(size, "big")


def _cut(rng: random.Random, data: bytearray) -> None:
    at = rng.randrange(len(data))
    del data[at : at + rng.choice((1, 2, 4, 100))]


def _truncate(rng: random.Random, data: bytearray) -> None:
    del data[rng.randrange(len(data)) :]


def _double(rng: random.Random, data: bytearray) -> None:
    at, size = rng.randrange(len(data)), rng.choice((1, 4, 16, 100))
    data[at:at] = data[at : at + size] * rng.choice((1, 2, 10))


def _insert(rng: random.Random, data: bytearray) -> None:
    at = rng.randrange(len(data))
    data[at:at] = rng.choice((b"\xff" * 5, b"\x80" * 8, b"\x00" * 4, rng.randbytes(6)))


def _other_header(rng: random.Random, data: bytearray) -> None:
    if len(data) >= 4:
        struct.pack_into(">hh", data, 0, rng.choice((*APIS, -1, 99)), rng.randrange(-1, 20))


_BITS = {"int8": 8, "int16": 16, "uint16": 16, "int32": 32, "uint32": 32, "int64": 64}
_DAMAGE: list[Callable[[random.Random, bytearray], None]] = [
    _flip_bits,
    _overwrite,
    _cut,
    _truncate,
    _double,
    _insert,
    _other_header,
]
