"""Well-formed requests with bad intentions: names that are paths, numbers beyond reason, groups without end."""

from __future__ import annotations

import struct
import time
from pathlib import Path
from typing import Any

import pytest

from ottla.common.errors import ErrorCode
from ottla.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteRecordsRequest,
    FindCoordinatorRequest,
    IncrementalAlterConfigsRequest,
    InitProducerIdRequest,
    JoinGroupRequest,
    ListOffsetsRequest,
    ListTransactionsRequest,
    MetadataRequest,
    OffsetCommitRequest,
)
from tests.hostile.conftest import Mistreated
from tests.support.brokers import OttlaProcess
from tests.support.raw_client import RawClient, batch_of, fetch_request, request_frame

pytestmark = pytest.mark.xdist_group("hostile")

BAD_NAMES = [
    "",
    ".",
    "..",
    "../escape",
    "/etc/passwd",
    "a/b",
    "a\x00b",
    "a b",
    "a\nb",
    "x" * 250,
    "ünïcode",
    "a:b",
    "a*b",
    "\\\\server\\share",
    "%2e%2e%2f",
]
INVALID = (ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def create(client: RawClient, name: str, partitions: int = 1, **fields: Any) -> ErrorCode:
    fields.setdefault("replication_factor", 1)
    wanted = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=partitions, **fields)
    (told,) = client.call(CreateTopicsRequest(topics=[wanted], timeout_ms=30_000), 7).topics
    return ErrorCode(told.error_code)


def folders(victim: OttlaProcess) -> set[str]:
    return {str(one.relative_to(victim.folder)) for one in victim.folder.rglob("*")}


@pytest.mark.parametrize("name", BAD_NAMES, ids=repr)
def test_bad_topic_names_reach_no_file(
    victim: OttlaProcess, client: RawClient, mistreated: Mistreated, name: str
) -> None:
    with mistreated():
        before = folders(victim)
        assert create(client, name) is ErrorCode.INVALID_TOPIC_EXCEPTION
        asked = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=name)])
        (told,) = client.call(asked, 12).topics
        assert ErrorCode(told.error_code) in INVALID
        assert ErrorCode(client.produce(name, batch_of(b"x")).error_code) in INVALID
        assert ErrorCode(client.fetch(name).error_code) in INVALID
        made = {one for one in folders(victim) - before if not one.startswith(("data/neighbour-0", "ottla.log"))}
        assert made == set()
    assert not Path("/tmp/escape").exists()


def test_a_name_of_249_characters_is_the_longest(client: RawClient, mistreated: Mistreated) -> None:
    with mistreated():
        name = "y" * 249
        assert create(client, name) is ErrorCode.NONE
        assert client.produce(name, batch_of(b"x")).base_offset == 0


def test_names_that_collide(client: RawClient, mistreated: Mistreated) -> None:
    """Metrics would mix up `a.b` and `a_b`: Kafka refuses the second."""
    with mistreated():
        assert create(client, "coll.ide") is ErrorCode.NONE
        assert create(client, "coll_ide") is ErrorCode.INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize("partitions", [0, -2, -(2**31), 10_001, 1_000_000, 2**31 - 1])
def test_numbers_of_partitions_beyond_reason(client: RawClient, mistreated: Mistreated, partitions: int) -> None:
    with mistreated():
        assert create(client, "too-many", partitions) in (ErrorCode.INVALID_PARTITIONS, ErrorCode.POLICY_VIOLATION)
        more = CreatePartitionsRequest.CreatePartitionsTopic(name="plain", count=partitions)
        (told,) = client.call(CreatePartitionsRequest(topics=[more], timeout_ms=10_000), 3).results
        assert told.error_code != 0


@pytest.mark.parametrize("factor", [0, -2, 2, 32767])
def test_replication_factors_of_one_broker(client: RawClient, mistreated: Mistreated, factor: int) -> None:
    with mistreated():
        assert create(client, "replicated", replication_factor=factor) is ErrorCode.INVALID_REPLICATION_FACTOR


@pytest.mark.parametrize("brokers", [[], [7], [1, 1], [-1], [2**31 - 1]])
def test_assignments_to_brokers_that_are_not(client: RawClient, mistreated: Mistreated, brokers: list[int]) -> None:
    assignment = CreateTopicsRequest.CreatableReplicaAssignment(partition_index=0, broker_ids=brokers)
    with mistreated():
        code = create(client, "assigned", -1, replication_factor=-1, assignments=[assignment])
        assert code in (ErrorCode.INVALID_REPLICA_ASSIGNMENT, ErrorCode.INVALID_REPLICATION_FACTOR)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("retention.ms", "-2"),
        ("retention.ms", "9" * 40),
        ("segment.bytes", "1"),
        ("segment.bytes", "0"),
        ("max.message.bytes", "-1"),
        ("cleanup.policy", "compact,delete,destroy"),
        ("compression.type", "bzip2"),
        ("min.cleanable.dirty.ratio", "NaN"),
        ("min.cleanable.dirty.ratio", "1e999"),
        ("no.such.thing", "1"),
        ("", ""),
        ("x" * 10_000, "y" * 10_000),
        ("index.interval.bytes", None),
    ],
)
def test_settings_beyond_reason(client: RawClient, mistreated: Mistreated, name: str, value: str | None) -> None:
    entry = IncrementalAlterConfigsRequest.AlterableConfig(name=name, config_operation=0, value=value)
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=2, resource_name="plain", configs=[entry]
    )
    with mistreated():
        (told,) = client.call(IncrementalAlterConfigsRequest(resources=[resource]), 1).responses
        assert told.error_code != 0
        assert client.produce("plain", batch_of(b"still works")).error_code == 0


def test_offsets_and_times_at_both_ends(client: RawClient, mistreated: Mistreated) -> None:
    edges = (-(2**63), -(2**31), -100, -6, -5, -4, -3, -2, -1, 0, 1, 2**31, 2**62, 2**63 - 1)
    with mistreated():
        for edge in edges:
            client.fetch("plain", edge, max_wait_ms=0)
            asked = ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=edge)
            topic = ListOffsetsRequest.ListOffsetsTopic(name="plain", partitions=[asked])
            assert len(client.call(ListOffsetsRequest(replica_id=-1, topics=[topic]), 7).topics) == 1
            doomed = DeleteRecordsRequest.DeleteRecordsPartition(partition_index=0, offset=min(edge, -2) or -2)
            topics = [DeleteRecordsRequest.DeleteRecordsTopic(name="plain", partitions=[doomed])]
            assert len(client.call(DeleteRecordsRequest(topics=topics, timeout_ms=1000), 2).topics) == 1
        assert client.produce("plain", batch_of(b"still works")).error_code == 0


@pytest.mark.parametrize("retention_ms", [2**63 - 1, -(2**63)])
def test_offsets_that_are_kept_beyond_reason(client: RawClient, mistreated: Mistreated, retention_ms: int) -> None:
    topic = OffsetCommitRequest.OffsetCommitRequestTopic(
        name="plain",
        partitions=[OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)],
    )
    request = OffsetCommitRequest(
        group_id="kept", retention_time_ms=retention_ms, generation_id_or_member_epoch=-1, topics=[topic]
    )
    coordinator(client, "kept")
    assert client.call(request, 4).topics[0].partitions[0].error_code == ErrorCode.NONE


def test_limits_of_a_fetch_at_both_ends(client: RawClient, mistreated: Mistreated) -> None:
    with mistreated():
        client.produce("plain", batch_of(b"something"))
        for edge in (-(2**31), -1, 0, 1, 2**31 - 1):
            for field in ("min_bytes", "max_bytes", "partition_max_bytes"):
                fields = {"max_wait_ms": 0, field: edge}
                assert client.call(fetch_request([("plain", 0, 0)], **fields), 12).error_code == 0


def test_forged_replica_ids(client: RawClient, mistreated: Mistreated) -> None:
    """CVE-2018-1288: a consumer that posed as a broker could move the high watermark."""
    with mistreated():
        end = client.produce("plain", batch_of(b"x")).base_offset + 1
        for replica in (0, 1, 2, 7, 2**31 - 1, -2, -3, -(2**31)):
            client.fetch("plain", end, replica_id=replica, max_wait_ms=0, version=11)
            client.fetch("plain", 2**40, replica_id=replica, max_wait_ms=0, version=11)
        line = client.fetch("plain", end, max_wait_ms=0)
        assert (line.error_code, line.high_watermark) == (0, end)


def test_a_stale_fetch_session(client: RawClient, mistreated: Mistreated) -> None:
    with mistreated():
        for session, epoch in ((1, 1), (2**31 - 1, 2**31 - 1), (-1, 5), (12345, -5), (0, 7), (5, -1), (5, 0)):
            wanted = fetch_request([("plain", 0, 0)], session_id=session, session_epoch=epoch, max_wait_ms=0)
            answer = client.call(wanted, 12)
            assert answer.error_code in (0, ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH)


# --- groups


def coordinator(client: RawClient, group: str) -> None:
    """Wait until the broker coordinates the group."""
    deadline = time.monotonic() + 60
    request = OffsetCommitRequest(group_id=group, topics=[])
    while time.monotonic() < deadline:
        found = client.call(FindCoordinatorRequest(key=group), 0)
        if found.error_code == 0 and client.call(request, 7) is not None:
            return
        time.sleep(0.1)
    raise AssertionError("no coordinator")


def join(group: str, metadata: bytes = b"", name: str = "range", **fields: Any) -> JoinGroupRequest:
    known = {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 10_000, "protocol_type": "consumer"}
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name=name, metadata=metadata)
    return JoinGroupRequest(group_id=group, protocols=[protocol], **(known | fields))


def test_members_without_end(victim: OttlaProcess, client: RawClient, mistreated: Mistreated) -> None:
    """Joins that never come back with the member id they were given."""
    with mistreated():
        coordinator(client, "crowded")
        frame = request_frame(join("crowded"), 5)
        whole = struct.pack(">i", len(frame)) + frame
        for _ in range(20):
            client.sock.sendall(whole * 250)
            for _ in range(250):
                client.receive_frame()


def test_members_that_join_and_hang_up(victim: OttlaProcess, client: RawClient, mistreated: Mistreated) -> None:
    with mistreated():
        coordinator(client, "revolving-door")
        frame = request_frame(join("revolving-door"), 3)  # before KIP-394: they are members at once
        for _ in range(200):
            with RawClient.to(victim.bootstrap) as hasty:
                hasty.send_frame(frame)


def test_huge_group_metadata(client: RawClient, mistreated: Mistreated) -> None:
    with mistreated(growth_bytes_max=250 << 20):
        coordinator(client, "talkative")
        for _ in range(3):
            answer = client.call(join("talkative", bytes(20 << 20), member_id=""), 5)
            assert answer.error_code != 0 or answer.member_id
        assert client.call(FindCoordinatorRequest(key="talkative"), 0).error_code == 0


@pytest.mark.parametrize("timeout_ms", [0, -1, -(2**31), 1, 2**31 - 1])
def test_session_timeouts_beyond_reason(client: RawClient, mistreated: Mistreated, timeout_ms: int) -> None:
    with mistreated():
        coordinator(client, "impatient")
        answer = client.call(join("impatient", session_timeout_ms=timeout_ms), 5)
        assert ErrorCode(answer.error_code) is ErrorCode.INVALID_SESSION_TIMEOUT


@pytest.mark.parametrize("group", ["", "\x00", "x" * 30_000, "../../escape", "ü"], ids=lambda one: repr(one[:12]))
def test_group_names(client: RawClient, mistreated: Mistreated, group: str) -> None:
    with mistreated():
        client.call(FindCoordinatorRequest(key=group), 0)
        client.call(join(group), 5)
        client.call(OffsetCommitRequest(group_id=group, topics=[]), 7)


def test_commit_metadata_beyond_the_limit(client: RawClient, mistreated: Mistreated) -> None:
    with mistreated():
        coordinator(client, "verbose")
        partition = OffsetCommitRequest.OffsetCommitRequestPartition(
            partition_index=0, committed_offset=1, committed_metadata="x" * 5000
        )
        topic = OffsetCommitRequest.OffsetCommitRequestTopic(name="plain", partitions=[partition])
        answer = client.call(OffsetCommitRequest(group_id="verbose", topics=[topic]), 7)
        assert ErrorCode(answer.topics[0].partitions[0].error_code) is ErrorCode.OFFSET_METADATA_TOO_LARGE


@pytest.mark.parametrize(
    "pattern", ["(a+)+$", "(" * 1000, "[", "*", "a{1000000}", "(?P<x>" * 50, "\\p{IsGreek}", "x" * 30_000]
)
def test_regular_expressions_of_subscribers(client: RawClient, mistreated: Mistreated, pattern: str) -> None:
    """KIP-848: the broker evaluates them, so one that takes for ever is an attack."""
    with mistreated():
        coordinator(client, "regular")
        create(client, "a" * 40 + "b")
        beat = ConsumerGroupHeartbeatRequest(
            group_id="regular",
            member_id="00000000-0000-0000-0000-000000000001",
            member_epoch=0,
            rebalance_timeout_ms=5000,
            subscribed_topic_regex=pattern,
            topic_partitions=[],
        )
        client.call(beat, 1)
        beat.subscribed_topic_regex, beat.member_epoch = None, -1
        client.call(beat, 1)


@pytest.mark.parametrize("pattern", ["(a+)+", "(a|aa)+", "(a*)*"])
def test_regular_expressions_over_transactions(client: RawClient, mistreated: Mistreated, pattern: str) -> None:
    """KIP-1152: the client chooses both the pattern and the transactional id it is matched with."""
    with mistreated():
        transactional_id = "a" * 60 + "!"
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            client.call(FindCoordinatorRequest(key=transactional_id, key_type=1), 1)
            started = client.call(
                InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000), 1
            )
            if started.error_code == 0:
                break
            time.sleep(0.1)
        assert started.error_code == 0
        answer = client.call(ListTransactionsRequest(transactional_id_pattern=pattern), 2)
        assert answer.error_code == 0
        assert transactional_id not in [one.transactional_id for one in answer.transaction_states]
        whole = client.call(ListTransactionsRequest(transactional_id_pattern=pattern + "!"), 2)
        assert transactional_id in [one.transactional_id for one in whole.transaction_states]
        bad = client.call(ListTransactionsRequest(transactional_id_pattern="("), 2)
        assert ErrorCode(bad.error_code) is ErrorCode.INVALID_REGULAR_EXPRESSION
