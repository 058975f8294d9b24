"""Requests whose insides lie: lengths, counts, tags and text, for every API and version that is served."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest

from ottla.broker.apis import APIS
from ottla.protocol import codec
from ottla.protocol.codec import REQUEST_ELEMENTS_MAX
from ottla.protocol.framing import flexible_from
from ottla.protocol.messages import (
    DeleteTopicsRequest,
    DescribeConfigsRequest,
    ListOffsetsRequest,
    MetadataRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
)
from tests.hostile.conftest import Mistreated
from tests.support.brokers import OttlaProcess
from tests.support.raw_client import ConnectionClosed, RawClient, fetch_request, produce_request, request_frame

pytestmark = pytest.mark.xdist_group("hostile")

MANY = REQUEST_ELEMENTS_MAX - 10
# Bodies that are wrong for nearly every message: all zeros and ones, negative and huge lengths, endless varints.
NONSENSE = {
    "nothing": b"",
    "a zero": b"\x00",
    "zeros": bytes(64),
    "ones": b"\xff" * 64,
    "negative lengths": b"\xff\xfe" * 32,
    "the largest int16": b"\x7f\xff" * 32,
    "the largest int32": b"\x7f\xff\xff\xff" * 16,
    "the smallest int32": b"\x80\x00\x00\x00" * 16,
    "an endless varint": b"\x80" * 64,
    "a varint of five bytes": b"\xff\xff\xff\xff\x0f" * 12,
    "bad text": b"\x00\x04\xc3\x28\xa0\xa1" + b"\x05\xc3\x28\xa0\xa1" * 10,
    "text": b"\x00\x05hello" * 9,
}


def header(key: int, version: int) -> bytes:
    raw = struct.pack(">hhih", key, version, 1, -1)
    return raw + b"\x00" if version >= flexible_from(f"{APIS[key].name}Request") else raw


def served() -> Iterator[tuple[int, int]]:
    for api in APIS.values():
        yield from ((api.key, version) for version in range(api.min_version, api.max_version + 1))


def answer_or_end(client: RawClient) -> bytes | None:
    """A whole frame, or None for a closed connection; anything else fails."""
    try:
        return client.receive_frame()
    except ConnectionClosed:
        return None


@pytest.mark.parametrize("what", NONSENSE)
def test_nonsense_in_every_version_of_every_api(victim: OttlaProcess, mistreated: Mistreated, what: str) -> None:
    with mistreated():
        client = RawClient.to(victim.bootstrap)
        for key, version in served():
            client.send_frame(header(key, version) + NONSENSE[what])
            if key == 0:  # what says acks=0 is not answered: ask for something else behind it
                client.send_frame(header(18, 0))
            if answer_or_end(client) is None:
                client.close()
                client = RawClient.to(victim.bootstrap)
        client.close()


def default_message(name: str, version: int) -> bytes:
    """The message with every field at its default: the shortest valid one."""
    return bytes(codec.encode(codec.message_class(name)(), version))


def test_every_request_cut_short_closes_its_connection_or_gets_an_error(
    victim: OttlaProcess, mistreated: Mistreated
) -> None:
    with mistreated():
        for key, version in served():
            name = f"{APIS[key].name}Request"
            if key == 0:  # tests/broker/test_produce.py cuts this one
                continue
            body = default_message(name, version)
            for cut in {len(body) // 2, len(body) - 1} - {-1, len(body)}:
                with RawClient.to(victim.bootstrap) as client:
                    client.send_frame(header(key, version) + body[:cut])
                    assert answer_or_end(client) is None, f"{name} v{version} cut at {cut}"


def test_every_request_with_only_defaults_is_answered_or_refused(victim: OttlaProcess, mistreated: Mistreated) -> None:
    """Empty names, zero ids, no lists: nothing that a proper client sends, but well formed."""
    with mistreated():
        for key, version in served():
            if key == 0 and version < 3:
                continue
            with RawClient.to(victim.bootstrap, timeout_s=20) as client:
                name = f"{APIS[key].name}Request"
                client.send_frame(header(key, version) + default_message(name, version))
                if key == 0:  # acks=0: no answer, or a closed connection
                    continue
                assert answer_or_end(client) is not None, f"{name} v{version}"


def test_null_where_null_may_not_be(client: RawClient, mistreated: Mistreated) -> None:
    with mistreated():
        client.send_frame(header(19, 5) + b"\x00" + struct.pack(">i", 1000) + b"\x00\x00")
        assert answer_or_end(client) is None


def test_client_ids(victim: OttlaProcess, mistreated: Mistreated) -> None:
    with mistreated():
        for size, raw, alive in (
            (-1, b"", True),
            (0, b"", True),
            (32767, b"x" * 32767, True),
            (-2, b"", True),
            (-32768, b"", True),
            (4, b"\xff\xfe\xfd\xfc", False),
            (100, b"short", False),
            (5, b"a\x00b\nc", True),
        ):
            with RawClient.to(victim.bootstrap) as client:
                client.send_frame(struct.pack(">hhih", 18, 0, 1, size) + raw)
                assert (answer_or_end(client) is not None) is alive, (size, raw[:10])


@pytest.mark.parametrize(
    "tags",
    [
        b"\x02\x01\x00\x01\x00",  # the same twice
        b"\x02\x05\x00\x01\x00",  # out of order
        b"\x01\x00\x7f",  # longer than the frame
        b"\xff\xff\xff\xff\x0f",  # four billion
        b"\x01\x00\xff\xff\xff\xff\x0f",
        b"\x80\x80\x80\x80\x80\x80\x00",  # a varint that does not end in time
    ],
    ids=["duplicate", "unordered", "too long", "too many", "huge", "overlong"],
)
def test_tags(victim: OttlaProcess, mistreated: Mistreated, tags: bytes) -> None:
    metadata = b"\x01\x01\x00\x00"  # no topics, no creation
    with mistreated():
        with RawClient.to(victim.bootstrap) as client:
            client.send_frame(header(3, 12) + metadata[:-1] + tags)
            assert answer_or_end(client) is None
        with RawClient.to(victim.bootstrap) as client:  # the same in the header
            client.send_frame(header(3, 12)[:-1] + tags + metadata)
            answer_or_end(client)


def test_tags_that_nobody_knows_are_skipped(client: RawClient) -> None:
    client.send_frame(header(3, 12)[:-1] + b"\x01\x63\x03abc" + b"\x01\x01\x00\x01\x63\x03abc")
    assert answer_or_end(client) is not None


# --- as much as a request may hold


def large_requests() -> dict[str, tuple[codec.Message, int]]:
    """Well-formed requests that name as many things as one may."""
    topic = MetadataRequest.MetadataRequestTopic
    offsets = ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=-1)
    commit = OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=2, resource_name="plain", configuration_keys=None
    )
    produce = produce_request("plain", None)
    produce.topic_data[0].partition_data = list(produce.topic_data[0].partition_data) * (MANY - 1)
    names = [f"nowhere-{number}" for number in range(MANY)]
    return {
        "metadata of one topic": (MetadataRequest(topics=[topic(name="plain")] * MANY), 12),
        "metadata of many topics": (
            MetadataRequest(topics=[topic(name=name) for name in names], allow_auto_topic_creation=False),
            12,
        ),
        "list offsets": (
            ListOffsetsRequest(
                replica_id=-1,
                topics=[ListOffsetsRequest.ListOffsetsTopic(name="plain", partitions=[offsets] * (MANY - 1))],
            ),
            7,
        ),
        "fetch": (fetch_request([("plain", 0, 0)] * (MANY // 2), max_bytes=1), 12),
        "fetch that waits": (fetch_request([("compacted", 0, 0)] * (MANY // 2), max_wait_ms=300), 12),
        "fetch session": (
            fetch_request([("plain", number, 0) for number in range(MANY // 2)], session_epoch=0, max_wait_ms=0),
            12,
        ),
        "offset commit": (
            OffsetCommitRequest(
                group_id="hostile",
                topics=[OffsetCommitRequest.OffsetCommitRequestTopic(name="plain", partitions=[commit] * (MANY - 1))],
            ),
            7,
        ),
        "offset fetch": (
            OffsetFetchRequest(
                group_id="hostile",
                topics=[OffsetFetchRequest.OffsetFetchRequestTopic(name="plain", partition_indexes=[0] * (MANY - 1))],
            ),
            6,
        ),
        "describe configs": (DescribeConfigsRequest(resources=[resource] * MANY), 4),
        "delete topics": (DeleteTopicsRequest(topic_names=names, timeout_ms=1000), 5),
        "produce": (produce, 9),
    }


LARGE = large_requests()


@pytest.mark.parametrize("what", LARGE)
def test_requests_as_large_as_they_may_be(victim: OttlaProcess, mistreated: Mistreated, what: str) -> None:
    """From four clients at once, each twice: the good client waits for one of them at a time."""
    message, version = LARGE[what]
    frame = request_frame(message, version)
    whole = struct.pack(">i", len(frame)) + frame
    with mistreated(growth_bytes_max=200 << 20):
        clients = [RawClient.to(victim.bootstrap, timeout_s=60) for _ in range(4)]
        for client in clients:
            client.sock.sendall(whole * 2)
        for client in clients * 2:
            answer_or_end(client)
        for client in clients:
            client.close()


def test_one_more_than_a_request_may_hold(client: RawClient, mistreated: Mistreated) -> None:
    topics = [MetadataRequest.MetadataRequestTopic(name="plain")] * (REQUEST_ELEMENTS_MAX + 1)
    with mistreated():
        client.send(MetadataRequest(topics=topics), 12)
        assert answer_or_end(client) is None
