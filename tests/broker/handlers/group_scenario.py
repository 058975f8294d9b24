"""One conversation about groups and offsets that Kafka and Ottla must answer alike.

`transcript(bootstrap)` is run against both; `RECORDED` is what Kafka 4.3.1 answered, field by field. Member ids are
replaced by names in the order in which they come up. Run this file with OTTLA_KAFKA_LIBS set to record again.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from ottla.groups.consumer_protocol import read_assignment, write_assignment
from ottla.protocol import messages as m
from ottla.protocol.codec import Message
from tests.broker.handlers.group_talk import (
    UNKNOWN_ID,
    Talk,
    commit,
    commit_request,
    consumer_heartbeat,
    fetch_request,
    heartbeat_request,
    join_request,
    leave_request,
    new_member_id,
    sync_request,
    wait_until,
)

RECORDED = Path(__file__).with_name("group_scenario.kafka-4.3.1.json")
PROPERTIES = {
    "node.id": "1",
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.max.size": "2",
    "group.consumer.max.size": "3",
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.heartbeat.interval.ms": "5000",
    "group.consumer.min.heartbeat.interval.ms": "5000",
    "offset.metadata.max.bytes": "16",
}


def transcript(bootstrap: str) -> dict[str, Any]:
    talk = Talk(bootstrap)
    try:
        _prepare(talk)
        for part in (
            _coordinators,
            _simple_offsets,
            _offset_versions,
            _joining,
            _rebalance,
            _leaving,
            _static,
            _consumer_requests,
            _consumer_group,
            _consumer_static,
            _consumer_pattern,
            _migration,
            _deletion,
        ):
            part(talk)
    finally:
        talk.close()
    return talk.answers


def _prepare(talk: Talk) -> None:
    topic = m.CreateTopicsRequest.CreatableTopic(name="orders", num_partitions=4, replication_factor=1)
    created = talk.client.call(m.CreateTopicsRequest(topics=[topic], timeout_ms=20_000), 7)
    talk.topic_id = bytes(created.topics[0].topic_id)
    for _ in range(300):
        found = talk.client.call(m.FindCoordinatorRequest(key="x", key_type=0), 3)
        if found.error_code == 0 and not commit(talk, "warm-up", 1).topics[0].partitions[0].error_code:
            return
        time.sleep(0.1)
    raise AssertionError("no coordinator")


# --- coordinators ------------------------------------------------------------------------------------------------


def _coordinators(talk: Talk) -> None:
    for version in (0, 1, 3):
        talk.ask(f"find v{version}", m.FindCoordinatorRequest(key="g", key_type=0), version)
    for version in (4, 6):
        talk.ask(f"find several v{version}", m.FindCoordinatorRequest(coordinator_keys=["g", "h"], key_type=0), version)
    talk.ask("find an unknown type", m.FindCoordinatorRequest(coordinator_keys=["g"], key_type=7), 4)


# --- offsets without membership ----------------------------------------------------------------------------------


def _simple_offsets(talk: Talk) -> None:
    def commit(label: str, group: str, offset: int, version: int = 9, **more: Any) -> None:
        talk.ask(label, commit_request(talk, group, offset, **more), version)

    commit("commit without membership", "simple", 5, metadata="m")
    commit("commit for a topic that is not there", "simple", 5, topic="nowhere")
    commit("commit by an unknown id", "simple", 5, 10, topic_id=UNKNOWN_ID)
    commit("commit with metadata that is too long", "simple", 6, metadata="x" * 17)
    commit("commit for a partition that is not there", "simple", 7, partition=99)
    commit("commit with a generation, unknown group, v8", "none", 5, 8, generation_id_or_member_epoch=1, member_id="m")
    commit("commit with a generation, unknown group, v9", "none", 5, 9, generation_id_or_member_epoch=1, member_id="m")
    commit("commit with a member id only", "simple", 5, member_id="m")
    commit("commit for the empty group id", "", 5)
    talk.ask("fetch", fetch_request(talk, "simple", (0, 1)), 9)
    talk.ask("fetch by id", fetch_request(talk, "simple", (0, 1)), 10)
    talk.ask("fetch by an unknown id", fetch_request(talk, "simple", (0,), topic_id=UNKNOWN_ID), 10)
    talk.ask("fetch all", fetch_request(talk, "simple", None), 9)
    talk.ask("fetch all by id", fetch_request(talk, "simple", None), 10)
    talk.ask("fetch of an unknown group", fetch_request(talk, "none", (0,)), 9)
    talk.ask("fetch all of an unknown group", fetch_request(talk, "none", None), 9)
    talk.ask("fetch with a member", fetch_request(talk, "simple", (0,), member_id="m", member_epoch=3), 9)


def _offset_versions(talk: Talk) -> None:
    for version in range(2, 11):
        request = commit_request(talk, "versions", 100 + version, partition=version % 4, metadata=f"v{version}")
        talk.ask(f"commit v{version}", request, version)
    topic = m.OffsetFetchRequest.OffsetFetchRequestTopic(name="orders", partition_indexes=[0, 1, 2, 3])
    for version in range(1, 8):
        talk.ask(f"fetch v{version}", m.OffsetFetchRequest(group_id="versions", topics=[topic]), version)
        if version >= 2:
            talk.ask(f"fetch all v{version}", m.OffsetFetchRequest(group_id="versions", topics=None), version)
    for version in range(8, 11):
        talk.ask(f"fetch v{version}", fetch_request(talk, "versions", (0, 1, 2, 3)), version)
    delete = m.OffsetDeleteRequest.OffsetDeleteRequestTopic
    one = m.OffsetDeleteRequest.OffsetDeleteRequestPartition
    wanted = [
        delete(name="orders", partitions=[one(partition_index=0), one(partition_index=9)]),
        delete(name="nowhere", partitions=[one(partition_index=0)]),
    ]
    talk.ask("delete offsets", m.OffsetDeleteRequest(group_id="versions", topics=wanted), 0)
    talk.ask("delete offsets of an unknown group", m.OffsetDeleteRequest(group_id="none", topics=wanted), 0)
    talk.ask("fetch after deletion", fetch_request(talk, "versions", (0, 1)), 9)


# --- classic groups ----------------------------------------------------------------------------------------------


def _joining(talk: Talk) -> None:
    for label, request in {
        "join without a group id": join_request(""),
        "join with too short a session": join_request("j", session_timeout_ms=1),
        "join with too long a session": join_request("j", session_timeout_ms=10_000_000),
        "join an unknown group with an id": join_request("j", "stranger"),
        "join without protocols": join_request("j", protocols=[]),
        "join without a protocol type": join_request("j", protocol_type=""),
    }.items():
        talk.ask(label, request, 9)
    for version in range(4):
        group = f"join-v{version}"
        answer = talk.client.call(join_request(group), version)
        talk.name(answer.member_id, "the only one")
        talk.note(f"join v{version}", answer)
        synced = sync_request(group, answer.member_id, 1, {answer.member_id: b"mine"})
        talk.ask(f"sync v{version}", synced, version)
        talk.ask(f"heartbeat v{version}", heartbeat_request(group, answer.member_id, 1), version)
        leave = m.LeaveGroupRequest(
            group_id=group,
            member_id=answer.member_id,
            members=[m.LeaveGroupRequest.MemberIdentity(member_id=answer.member_id)],
        )
        talk.ask(f"leave v{version}", leave, version)
        talk.ask(f"leave v{version} again", leave, version)
    for version in (4, 5, 6, 7, 8, 9):
        required = talk.client.call(join_request(f"join-v{version}"), version)
        talk.name(required.member_id, "given out")
        talk.note(f"join v{version}", required)
        talk.ask(f"join v{version} with the id", join_request(f"join-v{version}", required.member_id), version)


def _rebalance(talk: Talk) -> None:
    group = "reb"
    describe = m.DescribeGroupsRequest(groups=[group], include_authorized_operations=True)
    talk.ask("describe what is not there v5", describe, 5)
    talk.ask("describe what is not there v6", describe, 6)
    first = new_member_id(talk, group, "first")
    talk.ask("describe with an id given out", describe, 6)
    talk.ask("first joins", join_request(group, first), 9)
    talk.ask("describe while completing", describe, 6)
    talk.ask(
        "commit while completing", commit_request(talk, group, 1, member_id=first, generation_id_or_member_epoch=1), 9
    )
    talk.ask("heartbeat while completing", heartbeat_request(group, first, 1), 4)
    talk.ask("sync with a wrong generation", sync_request(group, first, 2), 5)
    talk.ask("sync by a stranger", sync_request(group, "stranger", 1), 5)
    talk.ask("sync with a wrong protocol", sync_request(group, first, 1, protocol_name="other"), 5)
    talk.ask("sync with a wrong type", sync_request(group, first, 1, protocol_type="connect"), 5)
    talk.ask("sync of an unknown group", sync_request("none", first, 1), 5)
    talk.ask("sync without a group id", sync_request("", first, 1), 5)
    talk.ask("sync without a protocol", sync_request(group, first, 1, protocol_name=None), 5)
    talk.ask("sync without a type", sync_request(group, first, 1, protocol_type=None), 5)
    talk.ask("first syncs", sync_request(group, first, 1, {first: b"all"}), 5)
    talk.ask("first syncs again", sync_request(group, first, 1), 5)
    for version in (0, 4, 5, 6):
        talk.ask(f"describe stable v{version}", describe, version)
    for label, request in {
        "heartbeat with an old generation": heartbeat_request(group, first, 0),
        "heartbeat by a stranger": heartbeat_request(group, "stranger", 1),
        "heartbeat of an unknown group": heartbeat_request("none", first, 1),
        "heartbeat without a group id": heartbeat_request("", first, 1),
        "heartbeat with an instance that is not there": heartbeat_request(group, first, 1, "i"),
    }.items():
        talk.ask(label, request, 4)
    talk.ask("commit as a member", commit_request(talk, group, 1, member_id=first, generation_id_or_member_epoch=1), 9)
    talk.ask(
        "commit with an old generation",
        commit_request(talk, group, 1, member_id=first, generation_id_or_member_epoch=0),
        9,
    )
    talk.ask(
        "commit as a stranger",
        commit_request(talk, group, 1, member_id="stranger", generation_id_or_member_epoch=1),
        9,
    )
    talk.ask("commit without membership to a group with members", commit_request(talk, group, 1), 9)
    talk.ask("join with another protocol", join_request(group, protocols=[("other", b"")]), 9)
    talk.ask("join with another type", join_request(group, protocol_type="connect"), 9)
    talk.ask("list", m.ListGroupsRequest(states_filter=["Stable", "CompletingRebalance"]), 5)
    _second_member(talk, group, first, describe)


def _second_member(talk: Talk, group: str, first: str, describe: Message) -> None:
    second = new_member_id(talk, group, "second")
    waiting = talk.send(join_request(group, second), 9)
    wait_until(talk, group, "PreparingRebalance")
    talk.ask("describe while preparing", describe, 6)
    talk.ask("heartbeat while preparing", heartbeat_request(group, first, 1), 4)
    talk.ask("sync while preparing", sync_request(group, first, 1), 5)
    talk.ask(
        "commit while preparing", commit_request(talk, group, 2, member_id=first, generation_id_or_member_epoch=1), 9
    )
    talk.ask("first rejoins", join_request(group, first), 9)
    talk.note("second joins", waiting())
    follower = talk.send(sync_request(group, second, 2), 5)
    talk.ask("first syncs for both", sync_request(group, first, 2, {first: b"1", second: b"2"}), 5)
    talk.note("second syncs", follower())
    talk.ask("second rejoins with nothing new", join_request(group, second), 9)
    talk.ask("a third is too many", join_request(group), 9)
    talk.ask("delete a group with members", m.DeleteGroupsRequest(groups_names=[group]), 2)
    topic = m.OffsetDeleteRequest.OffsetDeleteRequestTopic(
        name="orders", partitions=[m.OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index=0)]
    )
    talk.ask("delete offsets that are read", m.OffsetDeleteRequest(group_id=group, topics=[topic]), 0)


def _leaving(talk: Talk) -> None:
    talk.ask("leave an unknown group", leave_request("none", ("m", None)), 5)
    talk.ask("leave without a group id", leave_request("", ("m", None)), 5)
    group = "leave"
    first = new_member_id(talk, group, "first to leave")
    talk.client.call(join_request(group, first), 9)
    talk.client.call(sync_request(group, first, 1, {}), 5)
    talk.ask("leave with strangers", leave_request(group, ("s", None), (first, "i"), ("", "i"), ("", None)), 5)
    talk.ask("leave", leave_request(group, (first, None), (first, None)), 5)
    talk.ask("describe empty", m.DescribeGroupsRequest(groups=[group]), 6)
    talk.ask("rejoin after leaving", join_request(group, first), 9)
    talk.ask("sync after leaving", sync_request(group, first, 1), 5)
    talk.ask("heartbeat after leaving", heartbeat_request(group, first, 1), 4)


# --- static members ----------------------------------------------------------------------------------------------


def _static(talk: Talk) -> None:
    group = "static"
    joined = talk.client.call(join_request(group, instance="i"), 9)
    old = talk.name(joined.member_id, "i of old")
    talk.note("a static member joins", joined)
    talk.ask("it syncs", sync_request(group, old, 1, {old: b"mine"}, group_instance_id="i"), 5)
    for version in (8, 9):
        back = talk.client.call(join_request(group, instance="i"), version)
        name = talk.name(back.member_id, f"i again v{version}")
        talk.note(f"it comes back v{version}", back)
    talk.ask("it syncs again", sync_request(group, name, 1, group_instance_id="i"), 5)
    talk.ask("the old id heartbeats", heartbeat_request(group, old, 1, "i"), 4)
    talk.ask("the old id heartbeats without its instance", heartbeat_request(group, old, 1), 4)
    talk.ask("the old id joins", join_request(group, old, instance="i"), 9)
    talk.ask("the old id syncs", sync_request(group, old, 1, group_instance_id="i"), 5)
    talk.ask(
        "the old id commits",
        commit_request(talk, group, 1, member_id=old, group_instance_id="i", generation_id_or_member_epoch=1),
        9,
    )
    talk.ask("the old id leaves", leave_request(group, (old, "i")), 5)
    talk.ask("describe a static member", m.DescribeGroupsRequest(groups=[group]), 6)
    talk.ask("an administrator removes it", leave_request(group, ("", "i")), 5)


# --- consumer groups ---------------------------------------------------------------------------------------------


def _consumer_requests(talk: Talk) -> None:
    full = {"rebalance_timeout_ms": 1, "subscribed_topic_names": ["orders"], "topic_partitions": []}
    bare = m.ConsumerGroupHeartbeatRequest
    for label, request in {
        "no group id": bare(group_id="", member_id="m", **full),
        "no member id": bare(group_id="c", member_id="", **full),
        "an empty instance id": bare(group_id="c", member_id="m", instance_id="", **full),
        "an empty rack": bare(group_id="c", member_id="m", rack_id="", **full),
        "no rebalance timeout": bare(group_id="c", member_id="m", **{**full, "rebalance_timeout_ms": -1}),
        "no partitions": bare(group_id="c", member_id="m", **{**full, "topic_partitions": None}),
        "some partitions": consumer_heartbeat(talk, "c", "m", 0, owned=[1]),
        "no subscription": bare(group_id="c", member_id="m", **{**full, "subscribed_topic_names": None}),
        "an epoch of -3": bare(group_id="c", member_id="m", member_epoch=-3, **full),
        "leaving for a while without an instance": bare(group_id="c", member_id="m", member_epoch=-2),
        "an unknown assignor": consumer_heartbeat(talk, "c", "m", 0, server_assignor="mine"),
        "a bad expression": consumer_heartbeat(talk, "c", "m", 0, subscribed_topic_regex="("),
        "an unknown group": consumer_heartbeat(talk, "c", "m", 1),
        "leaving an unknown group": consumer_heartbeat(talk, "c", "m", -1),
    }.items():
        talk.ask(f"heartbeat with {label}", request, 1)


def _consumer_group(talk: Talk) -> None:
    group = "con"
    describe = m.ConsumerGroupDescribeRequest(group_ids=[group], include_authorized_operations=True)
    talk.ask("describe a consumer group that is not there", describe, 1)
    talk.ask("m1 joins", consumer_heartbeat(talk, group, "m1", 0), 1)
    talk.ask("m1 heartbeats", consumer_heartbeat(talk, group, "m1", 2), 1)
    talk.ask(
        "m1 tells all",
        consumer_heartbeat(talk, group, "m1", 2, owned=[0, 1, 2, 3], topics=["orders"], rebalance_timeout_ms=30_000),
        1,
    )
    talk.ask("m2 joins", consumer_heartbeat(talk, group, "m2", 0), 1)
    talk.ask("describe while assigning", describe, 0)
    told = talk.ask("m1 is told to let go", consumer_heartbeat(talk, group, "m1", 2, owned=[0, 1, 2, 3]), 1)
    kept = list(told.assignment.topic_partitions[0].partitions)
    talk.ask("m2 still waits", consumer_heartbeat(talk, group, "m2", 3), 1)
    talk.ask("m1 has not let go", consumer_heartbeat(talk, group, "m1", 2), 1)
    talk.ask("describe while reconciling", describe, 1)
    talk.ask("m1 lets go", consumer_heartbeat(talk, group, "m1", 2, owned=kept), 1)
    talk.ask("m2 gets the rest", consumer_heartbeat(talk, group, "m2", 3), 1)
    talk.ask("describe a stable consumer group", describe, 1)
    talk.ask("describe it as a classic one", m.DescribeGroupsRequest(groups=[group]), 6)
    talk.ask("m1 with an epoch too high", consumer_heartbeat(talk, group, "m1", 10), 1)
    talk.ask("m1 with its epoch before, and all it has", consumer_heartbeat(talk, group, "m1", 2, owned=kept), 1)
    talk.ask("m1 with its epoch before, and too much", consumer_heartbeat(talk, group, "m1", 2, owned=[0, 1, 2, 3]), 1)
    talk.ask("a stranger", consumer_heartbeat(talk, group, "stranger", 3), 1)
    for epoch in (0, 1, 2, 3, 4):
        mine = commit_request(talk, group, 7, partition=kept[0], member_id="m1", generation_id_or_member_epoch=epoch)
        talk.ask(f"commit with epoch {epoch}", mine, 9)
    others = next(one for one in range(4) if one not in kept)
    for epoch in (2, 3):
        request = commit_request(talk, group, 7, partition=others, member_id="m1", generation_id_or_member_epoch=epoch)
        talk.ask(f"commit what is another's with epoch {epoch}", request, 9)
    talk.ask("commit with v8", commit_request(talk, group, 7, member_id="m1", generation_id_or_member_epoch=3), 8)
    talk.ask(
        "commit as a stranger to a consumer group",
        commit_request(talk, group, 7, member_id="s", generation_id_or_member_epoch=3),
        9,
    )
    talk.ask("commit to a consumer group without membership", commit_request(talk, group, 7), 9)
    for member, epoch in (("m1", 3), ("m1", 2), ("s", 3), (None, -1)):
        request = fetch_request(talk, group, (kept[0],), member_id=member, member_epoch=epoch)
        talk.ask(f"fetch as {member} in epoch {epoch}", request, 9)
    talk.ask("m3 joins", consumer_heartbeat(talk, group, "m3", 0), 1)
    talk.ask("m4 is too many", consumer_heartbeat(talk, group, "m4", 0), 1)
    talk.ask("m3 unsubscribes", consumer_heartbeat(talk, group, "m3", 4, topics=[], owned=[]), 1)
    talk.ask("m3 leaves", consumer_heartbeat(talk, group, "m3", -1), 1)
    talk.ask("m3 leaves again", consumer_heartbeat(talk, group, "m3", -1), 1)
    talk.ask("m2 leaves", consumer_heartbeat(talk, group, "m2", -1), 1)
    talk.ask("delete a consumer group with members", m.DeleteGroupsRequest(groups_names=[group]), 2)
    talk.ask("m1 leaves", consumer_heartbeat(talk, group, "m1", -1), 1)
    talk.ask("describe an empty consumer group", describe, 1)
    talk.ask("list by type", m.ListGroupsRequest(types_filter=["consumer"]), 5)


def _consumer_static(talk: Talk) -> None:
    group = "con-static"
    talk.ask("a static consumer joins", consumer_heartbeat(talk, group, "s1", 0, instance="i"), 1)
    talk.ask("another takes its instance", consumer_heartbeat(talk, group, "s2", 0, instance="i"), 1)
    talk.ask("another heartbeats for it", consumer_heartbeat(talk, group, "s2", 2, instance="i"), 1)
    talk.ask("an instance that is not there", consumer_heartbeat(talk, group, "s1", 2, instance="j"), 1)
    talk.ask("another leaves for it", consumer_heartbeat(talk, group, "s2", -2, instance="i"), 1)
    talk.ask("it leaves for a while", consumer_heartbeat(talk, group, "s1", -2, instance="i"), 1)
    talk.ask("describe while it is away", m.ConsumerGroupDescribeRequest(group_ids=[group]), 1)
    talk.ask("it comes back", consumer_heartbeat(talk, group, "s3", 0, instance="i"), 1)
    talk.ask("its old id heartbeats", consumer_heartbeat(talk, group, "s1", 2, instance="i"), 1)
    talk.ask("it leaves for good", consumer_heartbeat(talk, group, "s3", -1, instance="i"), 1)


# --- migration ---------------------------------------------------------------------------------------------------


def _consumer_pattern(talk: Talk) -> None:
    """Kafka matches a new pattern beside the request, so the assignment may come with a later heartbeat."""
    for name, pattern, count in (("all", ".*", 2), ("internal", "__consumer.*", 1), ("part of a name", "order", 0)):
        group = f"pattern {name}"
        answer = talk.client.call(
            consumer_heartbeat(talk, group, "m1", 0, topics=[], subscribed_topic_regex=pattern), 1
        )
        found = _assigned(answer)
        for _ in range(300):
            if len(found) >= count:
                break
            time.sleep(0.05)
            answer = talk.client.call(consumer_heartbeat(talk, group, "m1", answer.member_epoch), 1)
            found = _assigned(answer) or found
        talk.note(f"how many partitions of each topic match: {name}", sorted(found))
        talk.client.call(consumer_heartbeat(talk, group, "m1", -1), 1)


def _assigned(answer: m.ConsumerGroupHeartbeatResponse) -> list[int]:
    return [] if answer.assignment is None else [len(one.partitions) for one in answer.assignment.topic_partitions]


def _migration(talk: Talk) -> None:
    group = "mig"
    describe = m.ConsumerGroupDescribeRequest(group_ids=[group])
    old = new_member_id(talk, group, "classic member")
    talk.client.call(join_request(group, old), 9)
    everything = write_assignment({"orders": [0, 1, 2, 3]}, 1)
    talk.client.call(sync_request(group, old, 1, {old: everything}), 5)
    talk.ask("a consumer joins a classic group", consumer_heartbeat(talk, group, "new", 0), 1)
    talk.ask("describe a mixed group", describe, 1)
    talk.ask("the classic member heartbeats", heartbeat_request(group, old, 1), 4)
    talk.ask("it commits", commit_request(talk, group, 3, member_id=old, generation_id_or_member_epoch=1), 7)
    talk.ask("it syncs before it joins", sync_request(group, old, 1), 5)
    talk.ask("it rejoins with all", join_request(group, old, owned={"orders": [0, 1, 2, 3]}), 9)
    synced = talk.client.call(sync_request(group, old, 1), 5)
    assignment = {one.topic: sorted(one.partitions) for one in read_assignment(synced.assignment).assigned_partitions}
    talk.answers["it is to keep how many"] = len(assignment["orders"])
    talk.ask("it heartbeats again", heartbeat_request(group, old, 1), 4)
    talk.ask("it rejoins with what it keeps", join_request(group, old, owned=assignment), 9)
    talk.ask("it syncs with a wrong protocol", sync_request(group, old, 2, protocol_name="other"), 5)
    talk.ask("it syncs with a wrong generation", sync_request(group, old, 1), 5)
    talk.client.call(sync_request(group, old, 2), 5)
    talk.ask("it heartbeats in the new epoch", heartbeat_request(group, old, 2), 4)
    talk.ask("the consumer gets its share", consumer_heartbeat(talk, group, "new", 2), 1)
    talk.ask("the consumer heartbeats as a classic member", heartbeat_request(group, "new", 2), 4)
    talk.ask("a classic newcomer", join_request(group, "newcomer", protocol_type="connect"), 9)
    talk.ask("describe it when it is stable", describe, 1)
    talk.ask("the consumer leaves", consumer_heartbeat(talk, group, "new", -1), 1)
    talk.ask("describe it as a consumer group", describe, 1)
    talk.ask("describe it as a classic group", m.DescribeGroupsRequest(groups=[group]), 6)
    talk.ask("the classic member is told to rejoin", heartbeat_request(group, old, 2), 4)
    talk.ask("it rejoins the classic group", join_request(group, old), 9)


# --- deletion ----------------------------------------------------------------------------------------------------


def _deletion(talk: Talk) -> None:
    names = ["simple", "none", "con", "mig", ""]
    for version in (0, 2):
        talk.ask(f"delete groups v{version}", m.DeleteGroupsRequest(groups_names=names), version)
    talk.ask("fetch after the group was deleted", fetch_request(talk, "simple", (0,)), 9)
    talk.ask("list what is left", m.ListGroupsRequest(states_filter=["Empty"]), 4)


def _record() -> None:
    from tests.support.kafka_peer import KafkaPeer

    with tempfile.TemporaryDirectory() as folder, KafkaPeer(Path(folder), PROPERTIES) as kafka:
        answers = transcript(kafka.bootstrap)
    lines = [f"{json.dumps(label)}: {json.dumps(answer)}" for label, answer in answers.items()]
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    sys.stdout.write(f"{len(answers)} answers recorded in {RECORDED.name}\n")


if __name__ == "__main__":
    _record()
