"""Damaged bytes for every loop of the compiled kernel, to be run where reads out of bounds are noticed.

    python -m tests.kernel.fuzz --rounds 1000 --seed 1

Sound records, Avro, Protobuf and JSON are made at random and damaged; what the kernel makes of them has to be sound
arrays or a refusal. Whether it is what it should be, other tests ask. Inputs lie in memory of exactly their size: bytes
of Python have one more behind them, Arrow's buffers many. What was read is written again, in slices.
"""

from __future__ import annotations

import argparse
import json
import random
import struct
import sys
from array import array
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from ottla.avro.parse import parse
from ottla.common.errors import OttlaError
from ottla.common.schemas import InvalidSchema
from ottla.kernel import _avro, _decode, _walk
from ottla.kernel.errors import CorruptRecords
from ottla.records import batch as v2
from ottla.records.compression import Codec, compress
from ottla.records.record import Record, assemble_batch, encode_record
from ottla.schemas.avro.columns import columns_of
from ottla.schemas.avro.resolving import Unreadable, resolve
from ottla.schemas.avro.writing import written
from ottla.schemas.json_columns import JsonColumns
from ottla.schemas.json_rows import JsonRows
from ottla.schemas.protobuf_columns import columns_of as protobuf_columns_of
from ottla.schemas.protobuf_rows import ProtobufRows
from ottla.schemas.registered import JSON, Registered
from tests.registry.random_avro import SchemaMaker
from tests.schemas.random_values import ValueMaker
from tests.schemas.test_json_kernel import SCHEMA
from tests.schemas.test_protobuf_kernel import SCHEMAS, registered, text_of, varint

HEAD = b"\x00\x00\x00\x00\x07"
TELLING = (b"\x00", b"\xff", b"\x7f", b"\x80" * 9 + b"\x01", b"\xff" * 10, b"\xff\xff\xff\xff\x0f", b"\x01", b"\x80")
NUMBERS = (*range(1, 21), 2000, *range(101, 122), *range(31, 35), *range(61, 65), 99)


def exactly(data: bytes) -> Any:
    """Memory of this size, and not a byte more."""
    return pa.py_buffer(array("B", data)) if data else pa.py_buffer(b"")


def column(values: Sequence[bytes | None], rng: random.Random) -> Any:
    """Perhaps in the middle of an array."""
    before = [rng.randbytes(3)] * rng.choice((0, 0, 1, 9))
    rows = [*before, *values]
    ends = [0]
    for value in rows:
        ends.append(ends[-1] + len(value or b""))
    bits = bytearray((len(rows) + 7) // 8)
    for place, value in enumerate(rows):
        bits[place // 8] |= (value is not None) << place % 8
    buffers = [
        exactly(bytes(bits)) if None in rows else None,
        exactly(struct.pack(f"={len(ends)}i", *ends)),
        exactly(b"".join(value or b"" for value in rows)),
    ]
    return pa.Array.from_buffers(pa.binary(), len(rows), buffers).slice(len(before))


def damaged(data: bytes, rng: random.Random) -> bytes:
    for _ in range(rng.choice((0, 1, 1, 2, 5))):
        at, more = rng.randrange(len(data) + 1), rng.randrange(8)
        match rng.randrange(5):
            case 0:
                data = data[:at]
            case 1:
                data = data[:at] + rng.choice(TELLING) + data[at + rng.randrange(3) :]
            case 2:
                data = data[:at] + data[at + more :]
            case 3:
                data = data[:at] + data[at : at + more] * 2 + data[at + more :]
            case _ if at < len(data):
                data = data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]
    return data


def some(make: Callable[[], bytes], rng: random.Random, head: bytes = HEAD) -> Any:
    values = [None if rng.random() < 0.1 else damaged(head + make(), rng) for _ in range(rng.randrange(1, 9))]
    return column(values, rng)


def sliced(rows: Any, rng: random.Random) -> Any:
    start = rng.randrange(len(rows) + 1)
    return rows.slice(start, rng.randrange(len(rows) - start + 1))


# --- one round each


def records(rng: random.Random) -> None:
    def one(offset: int) -> Record:
        fields = [None if rng.random() < 0.2 else rng.randbytes(rng.choice((0, 1, 63, 64, 300))) for _ in range(3)]
        headers = (("nä" * rng.randrange(3), fields[2]),) * rng.randrange(3)
        return Record(offset, rng.choice((-1, 0, 10**12, 2**62)), fields[0], fields[1], headers)

    batches = []
    for base in range(0, 30, 10):
        count, codec = rng.randrange(1, 9), rng.choice([*Codec])
        body = bytearray()
        for place in range(count):
            encode_record(body, one(base + place), base, 0)
        # Damaged before it is compressed, or after: then most of it is refused at once.
        data = damaged(bytes(body), rng)
        data = compress(codec, data) if codec else data
        batch = assemble_batch(
            data if rng.random() < 0.8 else damaged(data, rng),
            attributes=int(codec) | rng.choice((0, 0, v2.TIMESTAMP_TYPE_BIT, v2.TRANSACTIONAL_BIT, v2.CONTROL_BIT)),
            base_offset=base,
            leader_epoch=0,
            last_offset_delta=rng.choice((count - 1, count - 1, 0, 2**31 - 1)),
            base_timestamp=rng.choice((0, -1, 10**12, 2**63 - 1)),
            max_timestamp=rng.choice((0, -1, 2**62)),
            producer_id=rng.choice((-1, 1)),
            producer_epoch=0,
            base_sequence=0,
            count=rng.choice((count, count, count, count + 1, 0, -1, 2**31 - 1)),
        )
        batches.append(damaged(bytes(batch), rng) if rng.random() < 0.2 else bytes(batch))
    answer = array("B", b"".join(batches))
    try:
        _decode.fetched_until(answer, 0)
    except CorruptRecords:
        pass
    decoder = _decode.Decoder(
        answer, rng.choice((0, 5)), 2**62, [(1, 0)], with_headers=True, check_crcs=rng.random() < 0.5,
        decompressed_bytes_max=1 << 20,
    )  # fmt: skip
    try:
        while (columns := decoder.next_columns(rng.choice((1, 3, 1000)))) is not None:
            for each in columns:
                each.validate(full=True)
    except CorruptRecords:
        pass
    body = bytearray()
    count = rng.randrange(1, 5)
    for place in range(count):
        encode_record(body, one(place), 0, 0)
    try:
        _walk.keyless_records(damaged(bytes(body), rng), rng.choice((count, 0, 2**31 - 1)))
    except CorruptRecords:
        pass


def avro(rng: random.Random) -> None:
    reader_tree, writer_tree = SchemaMaker(seed := rng.randrange(2**31)).pair()
    try:
        reader, writer = parse(json.dumps(reader_tree)), parse(json.dumps(writer_tree))
        columns = columns_of(reader)
        program = resolve(writer, reader, columns).program
        maker = ValueMaker(seed)
        values = some(lambda: maker.data(writer), rng)
    except (InvalidSchema, OttlaError, Unreadable, RecursionError):
        return
    _avro.schema_ids(values)
    rows, _ = _avro.AvroDecoder(columns.shapes, columns.type).decode(values, {7: program})
    rows.validate(full=True)
    if reader.is_record:
        try:
            made = written(reader, [field.name for field in reader.fields])
            made.encode(sliced(rows.cast(made.type), rng), HEAD).validate(full=True)
        except (OttlaError, pa.ArrowException):
            return


def protobuf(rng: random.Random) -> None:
    def message(depth: int = 0) -> bytes:
        found = bytearray()
        for _ in range(rng.randrange(6)):
            number, raw = rng.choice(NUMBERS), rng.choice((0, 1, 2**31, 2**63, 2**64 - 7, rng.randrange(2**64)))
            match rng.choice((0, 1, 2, 2, 2, 3, 5)):
                case 0:
                    found += varint(number << 3) + varint(raw)
                case 1:
                    found += varint(number << 3 | 1) + rng.randbytes(8)
                case 3 if depth < 4:
                    found += varint(number << 3 | 3) + message(depth + 1) + varint(number << 3 | 4)
                case 5:
                    found += varint(number << 3 | 5) + rng.randbytes(4)
                case _:
                    plain = rng.choice((b"", "tëxt".encode(), rng.randbytes(9), varint(raw) * 3))
                    inner = message(depth + 1) if depth < 4 and rng.random() < 0.6 else plain
                    found += varint(number << 3 | 2) + varint(len(inner)) + inner
        return bytes(found)

    syntax = rng.choice(("proto2", "proto3"))
    decoder, writer, _ = _protobuf(syntax)
    rows, _ = decoder.decode(some(message, rng, HEAD + b"\x00"), {7: (0,)})
    rows.validate(full=True)
    try:
        writer.encode(sliced(rows, rng)).validate(full=True)
    except OttlaError:
        return


_MADE: dict[str, Any] = {}


def _protobuf(syntax: str) -> Any:
    if syntax not in _MADE:
        from ottla.kernel import _protobuf as compiled

        descriptor = SCHEMAS[syntax]
        decoder = compiled.ProtobufDecoder(*protobuf_columns_of(descriptor))
        names = [field.name for field in descriptor.fields]
        _MADE[syntax] = decoder, ProtobufRows(registered(text_of(syntax)), None, names), descriptor
    return _MADE[syntax]


def json_values(rng: random.Random) -> None:
    def tree(depth: int = 0) -> Any:
        kind = rng.randrange(9 if depth < 4 else 6)
        if kind > 6:
            return [tree(depth + 1) for _ in range(rng.randrange(4))]
        if kind == 6:
            return {rng.choice(("k", "x", "ü", "o", "")): tree(depth + 1) for _ in range(rng.randrange(4))}
        return rng.choice((None, True, rng.randrange(-9, 9), 2**63, -1e300, 0.1, "", "ü\n\x00\ud800😀", "s" * 70))

    def text() -> bytes:
        value = {name: tree() for name in rng.sample(sorted(SCHEMA["properties"]), rng.randrange(9))} | {"i": 7}
        made = json.dumps(value, ensure_ascii=rng.random() < 0.5, indent=rng.choice((None, 1)))
        return made.encode("utf-8", "surrogatepass")

    if "json" not in _MADE:
        schema = Registered(7, JSON, json.dumps(SCHEMA))
        _MADE["json"] = JsonColumns(schema), JsonRows(schema, is_plain=True)
    columns, writer = _MADE["json"]
    rows, _ = columns.decode(some(text, rng))
    rows.validate(full=True)
    try:
        writer.encode(sliced(rows, rng)).validate(full=True)
    except OttlaError:
        return


ROUNDS: dict[str, Callable[[random.Random], None]] = {
    "records": records,
    "avro": avro,
    "protobuf": protobuf,
    "json": json_values,
}


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1_000, help="of each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=sorted(ROUNDS))
    given = parser.parse_args(arguments)
    for number in range(given.rounds):
        for name, one in ROUNDS.items():
            if given.only in (None, name):
                seed = given.seed + number
                # The last that is printed is the one that ended badly: a sanitizer ends the process.
                print(f"\r{name} {seed}   ", end="", file=sys.stderr)
                one(random.Random(f"{name} {seed}"))
    print(f"\n{_decode.__file__}: {given.rounds} rounds of {given.only or ', '.join(ROUNDS)}: nothing was found")


if __name__ == "__main__":
    main(sys.argv[1:])
