"""The records of a batch for a compacted topic are looked at one by one, by the compiled walk and by its twin."""

from __future__ import annotations

import importlib
import random
import subprocess
import sys
from types import ModuleType

import pytest

from ottla.kernel import walk_pure
from ottla.kernel.errors import CorruptRecords
from ottla.records.record import Record, encode_record

# Varints of all the bytes and bits that there may be, and of more.
LONGEST = b"\x80" * 9 + b"\x01"
TOO_LONG = b"\x80" * 10 + b"\x00"
TOO_WIDE = b"\x80" * 9 + b"\x02"
NAMES = ["", "a", "ß", "€", "\ud7ff", "\ue000", "\U00010000", "\U0010ffff", "name"]


@pytest.fixture(params=["compiled", "pure"], scope="session")
def walk(request: pytest.FixtureRequest) -> ModuleType:
    if request.param == "pure":
        return walk_pure
    try:
        return importlib.import_module("ottla.kernel._walk")
    except ImportError:
        pytest.skip("the kernel is not compiled here: run `python hatch_build.py`")


def body_of(records: list[Record]) -> bytes:
    body = bytearray()
    for one in records:
        encode_record(body, one, 0, 0)
    return bytes(body)


def sized(body: bytes) -> bytes:
    """One record of less than 64 bytes, length first."""
    return bytes([len(body) * 2]) + body


def random_records(rng: random.Random, count: int) -> list[Record]:
    def field() -> bytes | None:
        return None if rng.random() < 0.2 else rng.randbytes(rng.choice([0, 1, 5, 63, 64, 200]))

    return [
        Record(
            n,
            rng.randrange(-(2**40), 2**40),
            field(),
            field(),
            tuple((rng.choice(NAMES), field()) for _ in range(rng.choice([0, 0, 1, 3]))),
        )
        for n in range(count)
    ]


def test_records_without_a_key_are_found(walk: ModuleType) -> None:
    rng = random.Random(1)
    for count in (1, 2, 100, 255, 256, 257, 1000):
        records = random_records(rng, count)
        missing = [one.offset for one in records if one.key is None]
        for data in (body_of(records), bytearray(body_of(records))):
            assert walk.keyless_records(data, count) == (len(missing), missing[: walk_pure.NAMED_MAX])


def test_no_more_of_them_are_named_than_an_answer_tells(walk: ModuleType) -> None:
    found = walk.keyless_records(body_of([Record(n, 0, None, b"") for n in range(5_000)]), 5_000)
    assert found == (5_000, list(range(walk_pure.NAMED_MAX)))


def test_long_varints_are_read_as_far_as_they_fit(walk: ModuleType) -> None:
    assert walk.keyless_records(sized(b"\x00" + LONGEST + b"\x00\x00\x00\x00"), 1) == (0, [])
    padded_zero = b"\x80" * 9 + b"\x00"
    assert walk.keyless_records(sized(b"\x00\x00" + padded_zero * 3 + b"\x00"), 1) == (0, [])


# What is wrong, and the words for it. A record is: attributes, time, offset, key, value, number of headers.
FAULTS = {
    "more records than bytes": (sized(bytes(6)), 2, "2 records cannot be in 7 bytes"),
    "no records": (sized(bytes(6)), 0, "the batch has bytes left over"),
    "left over": (sized(bytes(6)) + b"\x00", 1, "the batch has bytes left over"),
    "past its batch": (b"\x0e" + bytes(6), 1, "a record runs past its batch"),
    "negative length": (b"\x01" + bytes(6), 1, "a record runs past its batch"),
    "largest length": (b"\xfe" + b"\xff" * 8 + b"\x01", 1, "a record runs past its batch"),
    "smallest length": (b"\xff" * 9 + b"\x01", 1, "a record runs past its batch"),
    "ends inside": (sized(bytes(6)) + b"\x80" * 7, 2, "the batch ends inside a record"),
    "only lengths": (sized(bytes(12)) + b"\x00", 2, "record is not as long as it says"),
    "another offset": (sized(b"\x00\x00\x02\x00\x00\x00"), 1, "record 0 has offset delta 1"),
    "smallest offset": (
        sized(b"\x00\x00" + b"\xff" * 9 + b"\x01\x00\x00\x00"),
        1,
        "record 0 has offset delta -9223372036854775808",
    ),
    "too long": (sized(b"\x00" + TOO_LONG + bytes(4)), 1, "varint is longer than ten bytes"),
    "too wide a time": (sized(b"\x00" + TOO_WIDE + bytes(4)), 1, "varint has more than 64 bits"),
    "too wide an offset": (sized(b"\x00\x00" + TOO_WIDE + bytes(3)), 1, "varint has more than 64 bits"),
    "key of -2": (sized(b"\x00\x00\x00\x03\x00\x00"), 1, "length -2"),
    "value of -2": (sized(b"\x00\x00\x00\x00\x03\x00"), 1, "length -2"),
    "key too large": (sized(b"\x00\x00\x00\x06\x00\x00"), 1, "a field runs past its record"),
    "largest key": (sized(b"\x00\x00\x00\xfe" + b"\xff" * 8 + b"\x01\x00\x00"), 1, "a field runs past its record"),
    "value too large": (sized(b"\x00\x00\x00\x00\x04\x00"), 1, "a field runs past its record"),
    "headers of -1": (sized(b"\x00\x00\x00\x00\x00\x01"), 1, "-1 headers"),
    "too many headers": (sized(b"\x00\x00\x00\x00\x00\x06\x00\x00"), 1, "3 headers"),
    "header without a key": (sized(b"\x00\x00\x00\x00\x00\x02\x01\x00"), 1, "a header without a key"),
    "header key too large": (sized(b"\x00\x00\x00\x00\x00\x02\x04\x00"), 1, "a field runs past its record"),
    "header value of -2": (sized(b"\x00\x00\x00\x00\x00\x02\x00\x03"), 1, "length -2"),
    "header value too large": (sized(b"\x00\x00\x00\x00\x00\x02\x00\x02"), 1, "a field runs past its record"),
    "header key of no text": (sized(b"\x00\x00\x00\x00\x00\x02\x02\xff\x00"), 1, "a header key is not UTF-8"),
    "longer than its fields": (sized(bytes(7)), 1, "a record is not as long as it says"),
    "shorter than its fields": (b"\x08" + bytes(6), 1, "a field runs past its record"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_wrong_is_said(walk: ModuleType, fault: str) -> None:
    data, count, words = FAULTS[fault]
    with pytest.raises(CorruptRecords, match=words):
        walk.keyless_records(data, count)


def test_header_keys_are_text_where_python_says_so(walk: ModuleType) -> None:
    """Every start of a character, with what may follow at the edges of each range."""
    edges = [0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xFF]
    names = [bytes([first]) for first in range(256)]
    names += [bytes([first, second]) for first in range(0x80, 256) for second in edges]
    names += [bytes([first, second, 0x80]) for first in range(0xC0, 256) for second in edges]
    names += [
        bytes([first, second, third, 0xBF]) for first in (0xE0, 0xED, 0xF0, 0xF4) for second in edges for third in edges
    ]
    names += [bytes([0xF0, 0x90, 0x80, last]) for last in edges]
    for name in names:
        data = sized(b"\x00\x00\x00\x00\x00\x02" + bytes([len(name) * 2]) + name + b"\x00")
        try:
            name.decode()
        except UnicodeDecodeError:
            with pytest.raises(CorruptRecords, match="not UTF-8"):
                walk.keyless_records(data, 1)
        else:
            assert walk.keyless_records(data, 1) == (0, [])


def verdict(walk: ModuleType, data: bytes, count: int) -> object:
    try:
        return walk.keyless_records(data, count)
    except CorruptRecords as error:
        return str(error)


def damaged(rng: random.Random, data: bytes) -> bytes:
    body = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 5])):
        at, kind = rng.randrange(len(body)), rng.randrange(5)
        if kind == 0:
            body[at] = rng.choice([0, 1, 2, 3, 0x7F, 0x80, 0x81, 0xFE, 0xFF, rng.randrange(256)])
        elif kind == 1:
            body[at] ^= 1 << rng.randrange(8)
        elif kind == 2:
            del body[at + 1 :]
        elif kind == 3:
            del body[at : at + rng.randrange(1, 4)]
        else:
            body[at:at] = rng.choice([b"\x80", b"\xff" * 9, LONGEST, TOO_LONG, TOO_WIDE, rng.randbytes(3)])
        if not body:
            break
    return bytes(body)


def test_both_say_the_same_of_hostile_bytes() -> None:
    compiled = pytest.importorskip("ottla.kernel._walk")
    rng = random.Random(20)
    heard: set[str] = set()
    for _ in range(400):
        count = rng.choice([1, 2, 5, 20])
        good = body_of(random_records(rng, count))
        for _ in range(25):
            data, told = damaged(rng, good), max(0, count + rng.choice([0, 0, 0, 1, -1]))
            expected = verdict(walk_pure, data, told)
            assert verdict(compiled, data, told) == expected, (data, told)
            heard.add("".join(one for one in str(expected) if one.isalpha() or one == " ").strip())
    assert len(heard) >= 10, heard


def test_plain_python_stops_between_records_and_between_headers() -> None:
    headers = tuple(("", None) for _ in range(10_000))
    for records in ([Record(n, 0, b"k", None) for n in range(10_000)], [Record(0, 0, b"k", None, headers)]):
        stops = sum(1 for _ in walk_pure.keyless_steps(body_of(records), len(records)))
        assert stops >= 10_000 // 256


WITHOUT_PYARROW = """
import sys
sys.modules["pyarrow"] = sys.modules["pyspark"] = None
from ottla.broker.partitions import key_check
print(key_check.walk.IS_COMPILED)
"""


def test_the_broker_has_it_without_pyarrow() -> None:
    pytest.importorskip("ottla.kernel._walk")
    command = [sys.executable, "-W", "error", "-c", WITHOUT_PYARROW]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.returncode) == ("True\n", 0), done.stderr
