"""kill -9 of the broker while groups work: what was acknowledged is there, members go on, zombies are refused."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from ottla.common.errors import ErrorCode
from ottla.protocol import messages as m
from tests.broker.handlers.group_talk import (
    Talk,
    commit_request,
    consumer_heartbeat,
    fetch_request,
    heartbeat_request,
    join_request,
    new_member_id,
    sync_request,
)
from tests.support.brokers import OttlaProcess

CRASHES = 6
PROPERTIES = {
    "offsets.topic.num.partitions": "2",
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
}
Start = Callable[..., OttlaProcess]


def talk_to(broker: OttlaProcess) -> Talk:
    talk = Talk(broker.bootstrap)
    assert talk.client.call(m.FindCoordinatorRequest(key="g"), 3).error_code == 0
    return talk


def loaded(talk: Talk, group: str) -> None:
    deadline = time.monotonic() + 60
    while talk.client.call(fetch_request(talk, group), 9).groups[0].error_code:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_acknowledged_commits_survive_and_members_go_on(start_ottla: Start) -> None:
    broker = start_ottla(PROPERTIES)
    topic = m.CreateTopicsRequest.CreatableTopic(name="orders", num_partitions=4, replication_factor=1)
    talk = talk_to(broker)
    created = talk.client.call(m.CreateTopicsRequest(topics=[topic], timeout_ms=20_000), 7)
    topic_id = talk.topic_id = bytes(created.topics[0].topic_id)
    epoch = talk.client.call(consumer_heartbeat(talk, "new", "member", 0), 1).member_epoch
    classic = new_member_id(talk, "old", "classic")
    joined = talk.client.call(join_request("old", classic, session_timeout_ms=60_000), 9)
    talk.client.call(sync_request("old", classic, joined.generation_id, {classic: b"mine"}), 5)
    talk.close()
    offset = 0
    for _ in range(CRASHES):
        acknowledged = _commit_until_killed(broker, topic_id, epoch, offset)
        broker.start()
        talk = talk_to(broker)
        talk.topic_id = topic_id
        loaded(talk, "new")
        answer = talk.client.call(fetch_request(talk, "new", (0,), member_id="member", member_epoch=epoch), 9)
        found = answer.groups[0].topics[0].partitions[0].committed_offset
        # One more may have been stored whose answer got lost.
        assert found in (acknowledged, acknowledged + 1)
        offset = found
        assert talk.client.call(consumer_heartbeat(talk, "new", "member", epoch), 1).error_code == 0
        fenced = talk.client.call(consumer_heartbeat(talk, "new", "member", epoch - 1), 1)
        assert fenced.error_code == ErrorCode.FENCED_MEMBER_EPOCH
        loaded(talk, "old")
        generation = joined.generation_id
        assert talk.client.call(heartbeat_request("old", classic, generation), 4).error_code == 0
        refused = talk.client.call(heartbeat_request("old", classic, generation - 1), 4)
        assert refused.error_code == ErrorCode.ILLEGAL_GENERATION
        assert talk.client.call(sync_request("old", classic, generation), 5).assignment == b"mine"
        talk.close()
    assert offset > CRASHES


def _commit_until_killed(broker: OttlaProcess, topic_id: bytes, epoch: int, offset: int) -> int:
    """The last offset that was acknowledged; they rise by one."""
    talk = talk_to(broker)
    talk.topic_id = topic_id
    loaded(talk, "new")
    killer = threading.Timer(0.15, broker.kill)
    killer.start()
    try:
        while True:
            request = commit_request(talk, "new", offset + 1, member_id="member", generation_id_or_member_epoch=epoch)
            answer = talk.client.call(request, 9)
            assert answer.topics[0].partitions[0].error_code == 0
            offset += 1
    except (ConnectionError, OSError):
        return offset
    finally:
        killer.join()
        talk.close()
