"""AddPartitionsToTxn by hand reads and writes what the generated codec does."""

from __future__ import annotations

import random

import pytest

from ottla.protocol import codec
from ottla.protocol.add_partitions_frames import BATCHED, Addition, Result, Topic, decode, encode
from ottla.protocol.codec import MalformedMessage
from ottla.protocol.messages import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse

VERSIONS = range(6)
_Q, _R = AddPartitionsToTxnRequest, AddPartitionsToTxnResponse


def additions(rng: random.Random, count: int) -> list[Addition]:
    return [
        Addition(
            f"name-{number}-ü",
            rng.randrange(1 << 40),
            rng.randrange(1 << 15),
            rng.random() < 0.5,
            [
                Topic(
                    f"topic-{one}".encode(),
                    b"".join(rng.randrange(-1, 99).to_bytes(4, "big", signed=True) for _ in range(n)),
                )
                for one, n in enumerate(rng.choices((0, 1, 3, 200), k=rng.choice((0, 1, 600))))
            ],
        )
        for number in range(count)
    ]


def request(asked: list[Addition], version: int) -> bytes:
    transactions = [
        _Q.AddPartitionsToTxnTransaction(
            transactional_id=one.transactional_id,
            producer_id=one.producer_id,
            producer_epoch=one.epoch,
            verify_only=one.verify_only,
            topics=[
                _Q.AddPartitionsToTxnTopic(name=topic.name.decode(), partitions=list(topic.numbers()))
                for topic in one.topics
            ],
        )
        for one in asked
    ]
    first = transactions[0]
    message = _Q(
        transactions=transactions,
        v3_and_below_transactional_id=first.transactional_id,
        v3_and_below_producer_id=first.producer_id,
        v3_and_below_producer_epoch=first.producer_epoch,
        v3_and_below_topics=first.topics,
    )
    return bytes(codec.encode(message, version))


def read(raw: bytes, version: int) -> list[Addition]:
    found: list[Addition] = []
    for _ in decode(memoryview(raw), 0, version, found):
        pass
    return found


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("seed", range(5))
def test_requests_are_read_as_the_generated_codec_writes_them(version: int, seed: int) -> None:
    asked = additions(random.Random(seed), 3 if version >= BATCHED else 1)
    if version < BATCHED:
        asked = [one._replace(verify_only=False) for one in asked]
    assert read(request(asked, version), version) == asked


@pytest.mark.parametrize("version", VERSIONS)
def test_a_request_that_is_cut_anywhere_is_malformed(version: int) -> None:
    asked = [Addition("t", 1, 0, False, [Topic(b"a", bytes(8)), Topic(b"bc", bytes(4))])]
    raw = request(asked, version)
    for end in range(len(raw)):
        with pytest.raises(MalformedMessage):
            read(raw[:end], version)


def test_lengths_that_cannot_be_are_malformed() -> None:
    for raw in (b"\xff\xff", b"\x7f\xff" + bytes(20), b"\x00\x01t" + bytes(10) + b"\x7f\xff\xff\xff"):
        with pytest.raises(MalformedMessage):
            read(raw, 0)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("seed", range(5))
def test_answers_are_what_the_generated_codec_writes(version: int, seed: int) -> None:
    rng = random.Random(seed)
    asked = additions(rng, 3 if version >= BATCHED else 1)
    results = [
        (
            one.transactional_id,
            [
                Result(topic, rng.choice((0, 3, [rng.randrange(-1, 120) for _ in range(len(topic))])))
                for topic in one.topics
            ],
        )
        for one in asked
    ]
    written = bytearray()
    for _ in encode(version, results, written):
        pass

    def topics(rows: list[Result]) -> list[_R.AddPartitionsToTxnTopicResult]:
        return [
            _R.AddPartitionsToTxnTopicResult(
                name=topic.name.decode(),
                results_by_partition=[
                    _R.AddPartitionsToTxnPartitionResult(
                        partition_index=index, partition_error_code=code if isinstance(code, int) else code[number]
                    )
                    for number, index in enumerate(topic.numbers())
                ],
            )
            for topic, code in rows
        ]

    message = _R(
        results_by_transaction=[
            _R.AddPartitionsToTxnResult(transactional_id=name, topic_results=topics(rows)) for name, rows in results
        ],
        results_by_topic_v3_and_below=topics(results[0][1]),
    )
    assert written == codec.encode(message, version)
