"""Fetch over a real socket, in every version: where an answer starts and ends, when it comes, and sessions."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ottla.broker.partitions.fetch_sessions import FetchSessions
from ottla.common.errors import ErrorCode
from ottla.protocol import codec
from ottla.protocol.messages import DeleteRecordsRequest, DeleteTopicsRequest
from ottla.records.record import iterate_batches, read_records
from ottla.testing import Broker
from tests.support.broker_fixtures import topic_id
from tests.support.raw_client import ConnectionClosed, RawClient, batch_of, fetch_request

MakeTopic = Callable[..., str]
VERSIONS = range(4, 19)


@pytest.fixture
def other(broker: Broker) -> Iterator[RawClient]:
    """A second connection, to do things while the first one waits."""
    with RawClient.to(broker.bootstrap_servers) as connected:
        yield connected


def values(records: Any, offset: int = 0) -> list[bytes | None]:
    """What a consumer makes of the records when it asked for `offset`."""
    return [
        record.value
        for position, _ in iterate_batches(records or b"")
        for record in read_records(records, position)
        if record.offset >= offset
    ]


def error_of(line: Any) -> ErrorCode:
    return ErrorCode(line.error_code)


def lines(answer: Any) -> list[Any]:
    return [line for topic in answer.responses for line in topic.partitions]


# --- every version


@pytest.mark.parametrize("version", VERSIONS)
def test_records_are_read_in_every_version(client: RawClient, make_topic: MakeTopic, version: int) -> None:
    topic = make_topic()
    client.produce(topic, batch_of(b"a", b"b"))
    client.produce(topic, batch_of(b"c"))
    name = topic_id(client, topic) if version >= 13 else topic
    line = client.fetch(name, 0, version=version)
    assert values(line.records) == [b"a", b"b", b"c"]
    assert (line.high_watermark, line.last_stable_offset) == (3, 3)
    if version >= 5:
        assert line.log_start_offset == 0


@pytest.mark.parametrize("version", VERSIONS)
def test_an_empty_answer_in_every_version(client: RawClient, make_topic: MakeTopic, version: int) -> None:
    topic = make_topic()
    name = topic_id(client, topic) if version >= 13 else topic
    line = client.fetch(name, 0, version=version, max_wait_ms=0)
    assert (line.error_code, bytes(line.records or b""), line.high_watermark) == (0, b"", 0)
    unknown = b"?" * 16 if version >= 13 else "nowhere"
    line = client.fetch(unknown, 0, version=version)
    expected = ErrorCode.UNKNOWN_TOPIC_ID if version >= 13 else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert error_of(line) is expected


@pytest.mark.parametrize("version", range(4, 13))
def test_answers_are_read_by_an_independent_codec(client: RawClient, make_topic: MakeTopic, version: int) -> None:
    from kio.index import load_response_schema
    from kio.serial import entity_reader

    topic = make_topic(partitions=2)
    sent = batch_of(b"a", b"b")
    client.produce(topic, sent)
    wanted = [(topic, 0, 0), (topic, 1, 0), (topic, 9, 0)]
    client.send(fetch_request(wanted, isolation_level=1), version)
    frame = client.receive_frame()
    start = 5 if version >= 12 else 4
    response, size = entity_reader(load_response_schema(1, version))(frame, start)
    assert start + size == len(frame)
    found = [one for told in response.responses for one in told.partitions]
    assert [one.partition_index for one in found] == [0, 1, 9]
    assert [int(one.error_code) for one in found] == [0, 0, 3]
    assert bytes(found[0].records or b"")[16:] == bytes(sent[16:])


@pytest.mark.parametrize("version", [0, 3, 19])
def test_versions_that_are_not_served_close_the_connection(client: RawClient, version: int) -> None:
    client.send_frame(b"\x00\x01" + version.to_bytes(2, "big") + bytes(4) + b"\xff\xff" + bytes(40))
    assert client.is_closed_by_peer()


@pytest.mark.parametrize("version", VERSIONS)
def test_a_request_cut_anywhere_closes_the_connection(broker: Broker, make_topic: MakeTopic, version: int) -> None:
    body = bytes(codec.encode(fetch_request([("topic" if version < 13 else b"i" * 16, 0, 0)]), version))
    header = b"\x00\x01" + version.to_bytes(2, "big") + bytes(4) + b"\xff\xff" + (b"\x00" if version >= 12 else b"")
    for cut in (0, 3, 9, 17, len(body) // 2, len(body) - 3, len(body) - 1):
        with RawClient.to(broker.bootstrap_servers) as hostile:
            hostile.send_frame(header + body[:cut])
            with pytest.raises(ConnectionClosed):
                hostile.receive_frame()


# --- where an answer starts


def test_a_fetch_from_the_middle_of_a_batch_starts_with_the_whole_batch(
    client: RawClient, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    client.produce(topic, batch_of(b"a", b"b", b"c"))
    client.produce(topic, batch_of(b"d"))
    for offset in range(4):
        line = client.fetch(topic, offset)
        first = next(iter(iterate_batches(line.records)))[1]
        assert first.base_offset == (0 if offset < 3 else 3)
        assert values(line.records, offset) == [b"a", b"b", b"c", b"d"][offset:]


@pytest.mark.parametrize("offset", [-1, -(2**63), 4, 2**63 - 1])
def test_an_offset_that_is_not_there(client: RawClient, make_topic: MakeTopic, offset: int) -> None:
    topic = make_topic()
    client.produce(topic, batch_of(b"a", b"b", b"c"))
    line = client.fetch(topic, offset)
    assert error_of(line) is ErrorCode.OFFSET_OUT_OF_RANGE
    assert line.records is None or len(line.records) == 0


def test_below_the_log_start(client: RawClient, make_topic: MakeTopic) -> None:
    topic = make_topic()
    for number in range(5):
        client.produce(topic, batch_of(b"%d" % number))
    partition = DeleteRecordsRequest.DeleteRecordsPartition(partition_index=0, offset=3)
    request = DeleteRecordsRequest(
        topics=[DeleteRecordsRequest.DeleteRecordsTopic(name=topic, partitions=[partition])], timeout_ms=5000
    )
    assert client.call(request, 2).topics[0].partitions[0].low_watermark == 3
    assert error_of(client.fetch(topic, 2)) is ErrorCode.OFFSET_OUT_OF_RANGE
    line = client.fetch(topic, 3)
    assert (values(line.records, 3), line.log_start_offset) == ([b"3", b"4"], 3)


def test_leader_epochs_are_compared(client: RawClient, make_topic: MakeTopic) -> None:
    topic = make_topic()
    client.produce(topic, batch_of(b"a"))
    assert values(client.fetch(topic, 0, leader_epoch=0).records) == [b"a"]
    assert error_of(client.fetch(topic, 0, leader_epoch=7)) is ErrorCode.UNKNOWN_LEADER_EPOCH
    assert error_of(client.fetch(topic, 0, leader_epoch=-2)) is ErrorCode.FENCED_LEADER_EPOCH


def test_partitions_that_cannot_be(client: RawClient, make_topic: MakeTopic) -> None:
    topic = make_topic()
    for partition in (1, -1, -(2**31), 2**31 - 1):
        assert error_of(client.fetch(topic, 0, partition=partition)) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_client_that_says_it_is_a_broker_sees_no_more_than_others(client: RawClient, make_topic: MakeTopic) -> None:
    topic = make_topic()
    client.produce(topic, batch_of(b"a"))
    line = client.fetch(topic, 0, replica_id=7, version=11)
    assert line.error_code != 0 or values(line.records) == [b"a"]


# --- where an answer ends


def test_the_first_batch_is_whole_however_small_the_limits(client: RawClient, make_topic: MakeTopic) -> None:
    topic = make_topic()
    client.produce(topic, batch_of(bytes(50_000)))
    client.produce(topic, batch_of(b"next"))
    for limits in ({"max_bytes": 1}, {"partition_max_bytes": 1}, {"max_bytes": 0}, {"partition_max_bytes": 0}):
        line = client.fetch(topic, 0, **limits)
        assert values(line.records) == [bytes(50_000)], limits
        line = client.fetch(topic, 1, **limits)
        assert values(line.records) == [b"next"], limits


def test_only_the_first_partition_may_exceed_the_limit(client: RawClient, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=3)
    for partition in range(3):
        client.produce(topic, batch_of(bytes(10_000)), partition=partition)
    wanted = [(topic, partition, 0) for partition in range(3)]
    answer = client.call(fetch_request(wanted, max_bytes=100), 11)
    assert [len(values(line.records)) for line in lines(answer)] == [1, 0, 0]
    answer = client.call(fetch_request(wanted, max_bytes=15_000), 11)
    assert [len(values(line.records)) for line in lines(answer)] == [1, 0, 0]
    assert not any(line.records for line in lines(answer)[1:]), "clients take a cut batch for a mistake of ours"
    answer = client.call(fetch_request(wanted, max_bytes=25_000), 11)
    assert [len(values(line.records)) for line in lines(answer)] == [1, 1, 0]


def test_a_partitions_own_limit_holds(client: RawClient, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=2)
    for partition in range(2):
        for _ in range(20):
            client.produce(topic, batch_of(bytes(1000)), partition=partition)
    wanted = [(topic, partition, 0) for partition in range(2)]
    answer = client.call(fetch_request(wanted, partition_max_bytes=5000), 11)
    assert [len(line.records) for line in lines(answer)] == [5000, 5000]
    assert [len(values(line.records)) for line in lines(answer)] == [4, 4]


def test_small_fetches_get_through_a_log(client: RawClient, make_topic: MakeTopic) -> None:
    topic = make_topic(segment_bytes=1_048_576)
    sent = [b"%d" % number * (1 + number % 100 * 60) for number in range(300)]
    assert sum(map(len, sent)) > 2_000_000
    for one in sent:
        client.produce(topic, batch_of(one))
    for limit in (1, 5000, 30_000, 700_000):
        found, offset = [], 0
        while offset < 300:
            line = client.fetch(topic, offset, partition_max_bytes=limit)
            batches = list(iterate_batches(line.records))
            assert batches, f"no progress at {offset} with {limit} bytes"
            found += values(line.records, offset)
            offset = batches[-1][1].last_offset + 1
        assert found == sent


def test_fetch_max_bytes_of_the_broker_caps_what_a_client_may_ask_for(make_topic: MakeTopic) -> None:
    with Broker({"fetch.max.bytes": "10000"}) as small, RawClient.to(small.bootstrap_servers) as client:
        small.create_topic("topic", 2)
        for _ in range(50):
            for partition in range(2):
                client.produce("topic", batch_of(bytes(1000)), partition=partition)
        answer = client.call(fetch_request([("topic", 0, 0), ("topic", 1, 0)]), 11)
        assert 8000 < sum(len(line.records or b"") for line in lines(answer)) <= 10_000


def test_large_answers_arrive_whole(client: RawClient, make_topic: MakeTopic) -> None:
    topic = make_topic(max_message_bytes=10_000_000)
    sent = [bytes([number]) * 3_000_000 for number in range(5)]
    for one in sent:
        assert client.produce(topic, batch_of(one)).error_code == 0
    line = client.fetch(topic, 0, max_bytes=100_000_000, partition_max_bytes=100_000_000)
    assert values(line.records) == sent


# --- when an answer comes


# A fetch that waited as long as this would outlast the patience of the client, and the test would fail.
FOR_EVER_MS = 3_600_000


def timed_fetch(client: RawClient, topic: str, offset: int = 0, **fields: Any) -> tuple[float, Any]:
    before = time.monotonic()
    line = client.fetch(topic, offset, **fields)
    return time.monotonic() - before, line


def test_a_fetch_at_the_end_waits_as_long_as_it_may(client: RawClient, make_topic: MakeTopic) -> None:
    took_s, line = timed_fetch(client, make_topic(), max_wait_ms=300)
    assert took_s >= 0.29
    assert not line.records


def test_a_fetch_with_no_minimum_does_not_wait(client: RawClient, make_topic: MakeTopic) -> None:
    assert not client.fetch(make_topic(), 0, max_wait_ms=FOR_EVER_MS, min_bytes=0).records


@pytest.mark.parametrize("max_wait_ms", [0, -1, -(2**31)])
def test_a_fetch_that_may_not_wait_does_not(client: RawClient, make_topic: MakeTopic, max_wait_ms: int) -> None:
    assert not client.fetch(make_topic(), 0, max_wait_ms=max_wait_ms).records


def test_a_waiting_fetch_is_answered_by_the_next_record(
    client: RawClient, other: RawClient, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    later = threading.Timer(0.2, lambda: other.produce(topic, batch_of(b"now")))
    later.start()
    assert values(client.fetch(topic, 0, max_wait_ms=FOR_EVER_MS).records) == [b"now"]
    later.join()


def test_a_waiting_fetch_waits_for_the_minimum(client: RawClient, other: RawClient, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=2)
    fields = {"min_bytes": 3000, "max_wait_ms": 20_000}
    client.send(fetch_request([(topic, 0, 0), (topic, 1, 0)], **fields), 11)
    for partition in (0, 1, 0):
        other.produce(topic, batch_of(bytes(900)), partition=partition)
        time.sleep(0.05)
    client.sock.settimeout(0.3)
    with pytest.raises(TimeoutError):
        client.sock.recv(1)
    client.sock.settimeout(20)
    other.produce(topic, batch_of(bytes(900)), partition=1)
    answer = client.receive("FetchRequest", 11)
    assert sum(len(line.records or b"") for line in lines(answer)) > 3000


def test_what_is_less_than_the_minimum_comes_at_the_deadline(client: RawClient, make_topic: MakeTopic) -> None:
    topic = make_topic()
    client.produce(topic, batch_of(b"little"))
    took_s, line = timed_fetch(client, topic, max_wait_ms=300, min_bytes=100_000)
    assert (values(line.records), took_s >= 0.29) == ([b"little"], True)


def test_a_minimum_beyond_the_maximum_is_the_maximum(client: RawClient, make_topic: MakeTopic) -> None:
    topic = make_topic()
    client.produce(topic, batch_of(bytes(5000)))
    assert client.fetch(topic, 0, max_wait_ms=FOR_EVER_MS, min_bytes=2**31 - 1, max_bytes=2000).records


def test_an_error_is_told_at_once(client: RawClient, make_topic: MakeTopic) -> None:
    topic = make_topic()
    answer = client.call(fetch_request([(topic, 0, 0), (topic, 5, 0)], max_wait_ms=FOR_EVER_MS), 11)
    assert [error_of(line).name for line in lines(answer)] == ["NONE", "UNKNOWN_TOPIC_OR_PARTITION"]


def test_a_fetch_of_nothing_is_answered_at_once(client: RawClient) -> None:
    assert lines(client.call(fetch_request([], max_wait_ms=FOR_EVER_MS), 11)) == []


def test_other_clients_are_served_while_many_wait(broker: Broker, other: RawClient, make_topic: MakeTopic) -> None:
    topic, elsewhere = make_topic(), make_topic()
    waiting = [RawClient.to(broker.bootstrap_servers) for _ in range(100)]
    for one in waiting:
        one.send(fetch_request([(topic, 0, 0)], max_wait_ms=FOR_EVER_MS), 11)
    for number in range(100):
        assert other.produce(elsewhere, batch_of(b"x")).base_offset == number
    other.produce(topic, batch_of(b"for all"))
    for one in waiting:
        assert values(lines(one.receive("FetchRequest", 11))[0].records) == [b"for all"]
        one.close()


def test_a_topic_that_is_deleted_under_a_waiting_fetch(
    client: RawClient, other: RawClient, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    client.send(fetch_request([(topic, 0, 0)], max_wait_ms=FOR_EVER_MS), 12)
    time.sleep(0.1)
    request = DeleteTopicsRequest(topic_names=[topic], timeout_ms=5000)
    assert other.call(request, 5).responses[0].error_code == 0
    (line,) = lines(client.receive("FetchRequest", 12))
    assert error_of(line) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_topic_that_is_deleted_while_its_records_are_being_sent(
    broker: Broker, client: RawClient, other: RawClient, make_topic: MakeTopic
) -> None:
    """The slice holds its file: what was promised in the size of the answer arrives."""
    topic = make_topic(max_message_bytes=10_000_000)
    for number in range(4):
        client.produce(topic, batch_of(bytes([number]) * 5_000_000))
    client.send(fetch_request([(topic, 0, 0)], max_bytes=100_000_000, partition_max_bytes=100_000_000), 12)
    time.sleep(0.1)  # the socket is full now
    assert other.call(DeleteTopicsRequest(topic_names=[topic], timeout_ms=5000), 5).responses[0].error_code == 0
    broker.clock.advance(minutes=5)  # beyond file.delete.delay.ms
    time.sleep(0.1)
    (line,) = lines(client.receive("FetchRequest", 12))
    assert values(line.records) == [bytes([number]) * 5_000_000 for number in range(4)]


# --- transactions


def test_read_committed_has_a_list_of_aborted_transactions(client: RawClient, make_topic: MakeTopic) -> None:
    topic = make_topic()
    client.produce(topic, batch_of(b"a"))
    committed = client.fetch(topic, 0, isolation_level=1)
    assert list(committed.aborted_transactions) == []
    assert values(committed.records) == [b"a"]
    assert client.fetch(topic, 0, isolation_level=0).aborted_transactions is None


# --- sessions


def open_session(client: RawClient, wanted: list[tuple[Any, int, int]], version: int = 12) -> Any:
    answer = client.call(fetch_request(wanted, session_epoch=0, max_wait_ms=0), version)
    assert answer.session_id > 0
    return answer


def next_fetch(client: RawClient, session_id: int, epoch: int, *, version: int = 12, **fields: Any) -> Any:
    wanted = fields.pop("wanted", [])
    fields.setdefault("max_wait_ms", 0)
    return client.call(fetch_request(wanted, session_id=session_id, session_epoch=epoch, **fields), version)


@pytest.mark.parametrize("version", range(7, 19))
def test_a_session_tells_only_what_changed(client: RawClient, make_topic: MakeTopic, version: int) -> None:
    topic = make_topic(partitions=3)
    name: Any = topic_id(client, topic) if version >= 13 else topic
    opened = open_session(client, [(name, partition, 0) for partition in range(3)], version)
    assert len(lines(opened)) == 3
    session = opened.session_id
    again = next_fetch(client, session, 1, version=version)
    assert (lines(again), again.session_id) == ([], session)
    client.produce(topic, batch_of(b"a"), partition=1)
    (line,) = lines(next_fetch(client, session, 2, version=version))
    assert (line.partition_index, values(line.records)) == (1, [b"a"])
    # The session remembers the old position until it is told another.
    (line,) = lines(next_fetch(client, session, 3, version=version))
    assert values(line.records) == [b"a"]
    assert lines(next_fetch(client, session, 4, version=version, wanted=[(name, 1, 1)])) == []


def test_partitions_join_and_leave_a_session(client: RawClient, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=2)
    for partition in range(2):
        client.produce(topic, batch_of(b"%d" % partition), partition=partition)
    session = open_session(client, [(topic, 0, 0)]).session_id
    both = lines(next_fetch(client, session, 1, wanted=[(topic, 1, 0)]))
    assert sorted(line.partition_index for line in both) == [0, 1]
    (left,) = lines(next_fetch(client, session, 2, forgotten=[(topic, 0)]))
    assert left.partition_index == 1
    assert lines(next_fetch(client, session, 3, forgotten=[(topic, 1)])) == []


def test_a_session_waits_for_its_partitions(client: RawClient, other: RawClient, make_topic: MakeTopic) -> None:
    topic = make_topic()
    session = open_session(client, [(topic, 0, 0)]).session_id
    client.send(fetch_request([], session_id=session, session_epoch=1, max_wait_ms=20_000), 12)
    time.sleep(0.1)
    other.produce(topic, batch_of(b"late"))
    (line,) = lines(client.receive("FetchRequest", 12))
    assert values(line.records) == [b"late"]


def test_wrong_epochs_and_ids(client: RawClient, make_topic: MakeTopic) -> None:
    topic = make_topic()
    session = open_session(client, [(topic, 0, 0)]).session_id
    assert ErrorCode(next_fetch(client, session, 5).error_code) is ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert next_fetch(client, session, 1).error_code == 0
    assert ErrorCode(next_fetch(client, session, 1).error_code) is ErrorCode.INVALID_FETCH_SESSION_EPOCH
    unknown = next_fetch(client, session ^ 1, 1)
    assert ErrorCode(unknown.error_code) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert unknown.session_id == 0


def test_a_session_does_not_change_from_names_to_ids(client: RawClient, make_topic: MakeTopic) -> None:
    session = open_session(client, [(make_topic(), 0, 0)], version=12).session_id
    answer = next_fetch(client, session, 1, version=13)
    assert ErrorCode(answer.error_code) is ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_a_session_is_closed_by_the_final_epoch(client: RawClient, make_topic: MakeTopic) -> None:
    topic = make_topic()
    client.produce(topic, batch_of(b"a"))
    session = open_session(client, [(topic, 0, 0)]).session_id
    final = client.call(fetch_request([(topic, 0, 0)], session_id=session, session_epoch=-1, max_wait_ms=0), 12)
    assert (final.session_id, values(lines(final)[0].records)) == (0, [b"a"])
    assert ErrorCode(next_fetch(client, session, 1).error_code) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_an_error_inside_a_session_is_told_each_time(client: RawClient, make_topic: MakeTopic) -> None:
    topic = make_topic()
    session = open_session(client, [(topic, 0, 0)]).session_id
    for epoch in (1, 2):
        answer = next_fetch(client, session, epoch, wanted=[(topic, 0, 77)])
        assert error_of(lines(answer)[0]) is ErrorCode.OFFSET_OUT_OF_RANGE
    # Back to normal: the client hears of it, though nothing moved.
    (line,) = lines(next_fetch(client, session, 3, wanted=[(topic, 0, 0)]))
    assert line.error_code == 0


def test_no_partition_of_a_session_starves(client: RawClient, make_topic: MakeTopic) -> None:
    """KAFKA-12330: with answers too small for all, each partition gets its turn."""
    topic = make_topic(partitions=4)
    for partition in range(4):
        for _ in range(10):
            client.produce(topic, batch_of(bytes(1000)), partition=partition)
    session = open_session(client, [(topic, partition, 0) for partition in range(4)]).session_id
    seen = []
    for epoch in range(1, 9):
        answer = next_fetch(client, session, epoch, max_bytes=1)
        seen += [line.partition_index for line in lines(answer) if line.records]
    assert all(seen.count(partition) == 2 for partition in range(4)), seen


def test_sessions_give_way_when_there_is_no_room() -> None:
    with Broker({"max.incremental.fetch.session.cache.slots": "2"}) as broker:
        broker.create_topic("topic")
        with RawClient.to(broker.bootstrap_servers) as client:
            first = open_session(client, [("topic", 0, 0)]).session_id
            second = open_session(client, [("topic", 0, 0)]).session_id
            full = client.call(fetch_request([("topic", 0, 0)], session_epoch=0, max_wait_ms=0), 12)
            assert (full.session_id, full.error_code, len(lines(full))) == (0, 0, 1)
            assert next_fetch(client, second, 1).error_code == 0
            broker.clock.advance(seconds=FetchSessions.EVICTION_MS / 1000 + 1)
            assert next_fetch(client, second, 2).error_code == 0
            third = open_session(client, [("topic", 0, 0)]).session_id
            assert third not in (first, second)
            assert ErrorCode(next_fetch(client, first, 1).error_code) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
            assert next_fetch(client, second, 3).error_code == 0


def test_sessions_have_a_bounded_number_of_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are remembered whether they exist or not, so a client could fill the memory with a few requests."""
    monkeypatch.setattr(FetchSessions, "PARTITIONS_MAX", 1000)
    with Broker() as broker, RawClient.to(broker.bootstrap_servers) as client:
        broker.create_topic("topic")
        many = [("nowhere", number, 0) for number in range(600)]
        first = open_session(client, many)
        second = client.call(fetch_request(many, session_epoch=0, max_wait_ms=0), 12)
        assert (second.session_id, second.error_code, len(lines(second))) == (0, 0, 600)
        small = open_session(client, [("topic", 0, 0)]).session_id
        grown = next_fetch(client, first.session_id, 1, wanted=[("elsewhere", one, 0) for one in range(600)])
        assert ErrorCode(grown.error_code) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        assert next_fetch(client, small, 1).error_code == 0
        assert open_session(client, many).session_id != small


def test_a_large_request_waits_like_a_small_one(client: RawClient, other: RawClient, make_topic: MakeTopic) -> None:
    topic = make_topic(partitions=2)
    wanted: list[tuple[Any, int, int]] = [(topic, 0, 0)] * 2000 + [(topic, 1, 0)]
    client.send(fetch_request(wanted, max_wait_ms=20_000), 12)
    time.sleep(0.2)
    other.produce(topic, batch_of(b"late"), partition=1)
    assert values(lines(client.receive("FetchRequest", 12))[-1].records) == [b"late"]
    # The next one is given up with its connection.
    client.send(fetch_request(wanted[:-1], max_wait_ms=2**31 - 1), 12)
    time.sleep(0.1)
    client.close()
    assert other.produce(topic, batch_of(b"x")).error_code == 0


def test_a_topic_made_again_under_a_session_by_id_is_another_topic(
    client: RawClient, make_topic: MakeTopic, broker: Broker
) -> None:
    topic = make_topic()
    name = topic_id(client, topic)
    session = open_session(client, [(name, 0, 0)], version=13).session_id
    client.call(DeleteTopicsRequest(topic_names=[topic], timeout_ms=5000), 5)
    broker.create_topic(topic)
    client.produce(topic, batch_of(b"of another life"))
    (line,) = lines(next_fetch(client, session, 1, version=13))
    assert error_of(line) is ErrorCode.UNKNOWN_TOPIC_ID
