"""One conversation about transactions that Kafka and Ottla must answer alike, right and wrong requests in turn.

`transcript(client)` is run against both; `RECORDED` is what Kafka 4.3.1 answered, field by field. Producer ids are
replaced by the order in which they were given out. Kafka writes markers after it has answered EndTxn, so a request that
meets a transaction in the middle is asked again, as producers do. Run this file with OTTLA_KAFKA_LIBS set to record.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from ottla.common.errors import ErrorCode
from ottla.protocol import codec
from ottla.protocol import messages as m
from ottla.protocol.codec import Message
from ottla.records.record import iterate_batches, read_records
from tests.support.raw_client import RawClient, batch_of, fetch_request
from tests.support.transactional_client import (
    Identity,
    Partitions,
    add_offsets_request,
    add_request,
    all_codes,
    control_batches,
    end_request,
    init_request,
    offsets_request,
    produce_request,
    retried,
    transactional_batch,
)

RECORDED = Path(__file__).with_name("transaction_scenario.kafka-4.3.1.json")
PROPERTIES = {
    "node.id": "1",
    "auto.create.topics.enable": "false",
    "transaction.state.log.num.partitions": "1",
    "offsets.topic.num.partitions": "1",
}

_PRODUCER_FIELDS = {"producer_id", "previous_producer_id", "next_producer_id"}
_TIME_FIELDS = {"transaction_start_time_ms", "last_timestamp", "log_append_time_ms"}
NOBODY = Identity(987_654_321, 0)


class Scene:
    def __init__(self, client: RawClient) -> None:
        self.client = client
        self.answers: dict[str, Any] = {}
        self._producers: dict[int, str] = {-1: "none", NOBODY.producer_id: "nobody"}
        self.prefix = ""

    def ask(self, label: str, request: Message, version: int) -> Any:
        answer = retried(self.client, request, version, timeout_s=3)
        self.note(label, self.plain(answer))
        return answer

    def note(self, label: str, what: Any) -> None:
        label = self.prefix + label
        assert label not in self.answers, label
        self.answers[label] = json.loads(json.dumps(what))

    def plain(self, value: Any, name: str = "") -> Any:
        if isinstance(value, Message):
            plain = {field: self.plain(getattr(value, field), field) for field in value.__slots__}
            if plain.get("error_code", "NONE") != "NONE":
                plain.pop("log_start_offset", None)  # Kafka has it with some errors and not with others
            return plain
        if isinstance(value, (list, tuple)):
            return sorted((self.plain(one) for one in value), key=json.dumps)
        if isinstance(value, (bytes, bytearray)):
            return "bytes" if value else ""
        if name in _PRODUCER_FIELDS:
            return self._producer(value)
        if name == "error_message":
            return None  # in our own words
        if name in _TIME_FIELDS and value > 0:
            return "a time"
        return ErrorCode(value).name if name.endswith("error_code") else value

    def _producer(self, producer_id: int) -> str:
        return self._producers.setdefault(producer_id, f"producer {len(self._producers) - 2}")

    # --- in one word

    def init(self, label: str, transactional_id: str | None, version: int = 5, **more: Any) -> Identity:
        answer = self.ask(f"init {label}", init_request(transactional_id, **more), version)
        return Identity(answer.producer_id, answer.producer_epoch)

    def add(
        self, label: str, name: str, who: Identity, partitions: Partitions, version: int = 3, verify: bool = False
    ) -> None:
        self.ask(f"add {label}", add_request(name, who, partitions, verify=verify), version)

    def produce(
        self, label: str, name: str | None, who: Identity, topic: str = "data", version: int = 12, **more: Any
    ) -> None:
        partition = more.pop("partition", 0)
        batch = transactional_batch(who, b"value", **more)
        self.ask(f"produce {label}", produce_request(name, batch, topic, partition), version)

    def end(self, label: str, name: str, who: Identity, commit: bool, version: int = 5) -> Identity:
        answer = self.ask(f"end {label}", end_request(name, who, commit), version)
        self._settle(name)
        return Identity(answer.producer_id, answer.producer_epoch)

    def _settle(self, name: str) -> None:
        """Until markers are written."""
        request = m.DescribeTransactionsRequest(transactional_ids=[name])
        while self.client.call(request, 0).transaction_states[0].transaction_state.startswith("Prepare"):
            time.sleep(0.01)

    def describe(self, label: str, *names: str) -> None:
        self.ask(f"describe {label}", m.DescribeTransactionsRequest(transactional_ids=list(names)), 0)

    def list(self, label: str, version: int = 2, **filters: Any) -> None:
        self.ask(f"list {label}", m.ListTransactionsRequest(**filters), version)

    def read(self, label: str, topic: str = "data", partition: int = 0, offset: int = 0) -> None:
        """What a reader of committed records gets, and the log as it is."""
        for level in (1, 0):
            request = fetch_request([(topic, partition, offset)], isolation_level=level, max_wait_ms=0, min_bytes=0)
            line = self.client.call(request, 12).responses[0].partitions[0]
            data = bytes(line.records or b"")
            self.note(
                f"read {label} level {level}",
                {
                    "error": ErrorCode(line.error_code).name,
                    "watermark": line.high_watermark,
                    "stable": line.last_stable_offset,
                    "aborted": self.plain(line.aborted_transactions),
                    "batches": [
                        [
                            one.base_offset,
                            one.last_offset,
                            self._producer(one.producer_id),
                            one.producer_epoch,
                        ]
                        for _, one in iterate_batches(data)
                        if one.base_offset < (line.last_stable_offset if level else 1 << 60)
                    ],
                    "markers": [[one.offset, one.commit] for one in control_batches(data)] if not level else [],
                },
            )
        asked = m.ListOffsetsRequest
        for timestamp in (-1, 0):
            one = asked.ListOffsetsPartition(partition_index=partition, current_leader_epoch=-1, timestamp=timestamp)
            topics = [asked.ListOffsetsTopic(name=topic, partitions=[one])]
            answer = self.client.call(asked(replica_id=-1, isolation_level=1, topics=topics), 7)
            row = answer.topics[0].partitions[0]
            self.note(f"read {label} offset at {timestamp}", [ErrorCode(row.error_code).name, row.offset])
        topic_request = m.DescribeProducersRequest.TopicRequest(name=topic, partition_indexes=[partition])
        self.ask(f"read {label} producers", m.DescribeProducersRequest(topics=[topic_request]), 0)

    def committed(self, label: str, group: str) -> None:
        asked = m.OffsetFetchRequest
        for stable in (False, True):
            topics = [asked.OffsetFetchRequestTopics(name="data", partition_indexes=[0])]
            wanted = [asked.OffsetFetchRequestGroup(group_id=group, topics=topics)]
            answer = self.client.call(asked(groups=wanted, require_stable=stable), 8)
            self.note(f"committed {label} stable={stable}", self.plain(answer))


def transcript(client: RawClient) -> dict[str, Any]:
    scene = Scene(client)
    topic = m.CreateTopicsRequest.CreatableTopic
    for name, partitions in (("data", 3), ("more", 3), ("hang", 3), ("tv1data", 3), ("firsts", 5)):
        wanted = topic(name=name, num_partitions=partitions, replication_factor=1)
        client.call(m.CreateTopicsRequest(topics=[wanted], timeout_ms=20_000), 4)
    for key_type, key in ((1, "t"), (0, "g")):
        retried(client, m.FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key]), 4)
    _wait_for_coordinators(client)
    for part in (
        _names,
        _classic,
        _version_2,
        _version_2_ends,
        _classic_ends,
        _foreigners,
        _fencing,
        _recovery,
        _batched,
        _produce,
        _first_batches,
        _offsets,
        _offsets_of_deleted_topics,
        _markers,
        _internal_topics,
        _lists,
        _version_1,
        _state_log,
    ):
        scene.prefix = part.__name__.strip("_") + ": "
        part(scene)
    return scene.answers


def _wait_for_coordinators(client: RawClient) -> None:
    group = m.OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g", topics=[])
    for request, version in ((init_request("warm-up"), 5), (m.OffsetFetchRequest(groups=[group]), 8)):
        answer = retried(client, request, version, timeout_s=30)
        assert not any(all_codes(answer))


# --- the conversation, part by part ------------------------------------------------------------------------------


def _names(scene: Scene) -> None:
    for version in range(6):
        scene.init(f"v{version}", f"name{version}", version)
        scene.init(f"again v{version}", f"name{version}", version)
    scene.init("with an empty name", "")
    for timeout_ms in (0, -1, 1, 900_000, 900_001, 2**31 - 1):
        scene.init(f"for {timeout_ms} ms", f"timeout{timeout_ms}", timeout_ms=timeout_ms)
    for expected in (Identity(5, -1), Identity(-1, 5), NOBODY, Identity(-2, -2)):
        scene.init(f"as {expected}", "expecting", expected=expected)
    scene.describe("names", "name0", "timeout1", "expecting", "", "unknown")


def _classic(scene: Scene) -> None:
    for version in range(4):
        name = f"classic{version}"
        who = scene.init(name, name)
        scene.describe(f"{name} empty", name)
        scene.add(f"{name}", name, who, {"data": [0, 1]}, version)
        scene.add(f"{name} again", name, who, {"data": [1]}, version)
        scene.describe(f"{name} open", name)
        scene.produce(f"{name}", name, who, version=9 + min(version, 2))
        scene.produce(f"{name} more", name, who, version=9 + min(version, 2), sequence=1)
        scene.read(f"{name} open")
        who_again = scene.end(f"{name}", name, who, version % 2 == 0, version)
        scene.note(f"{name} next", [who_again.producer_id, who_again.epoch])
        scene.describe(f"{name} done", name)
        scene.read(f"{name} done")
    for version in range(5):
        name = f"offsets{version}"
        who = scene.init(name, name)
        scene.ask(f"add offsets {name}", add_offsets_request(name, who, f"group{version}"), min(version, 4))
        scene.describe(f"{name} open", name)
        request = offsets_request(name, who, f"group{version}", {("data", 0): 40 + version})
        scene.ask(f"commit offsets {name}", request, version)
        scene.committed(f"{name} open", f"group{version}")
        scene.end(name, name, who, version != 3, 4)
        scene.committed(f"{name} done", f"group{version}")


def _version_2(scene: Scene) -> None:
    name = "two"
    who = scene.init(name, name)
    scene.produce("first", name, who)
    scene.describe("open", name)
    scene.produce("second", name, who, sequence=1)
    scene.produce("elsewhere", name, who, partition=2)
    scene.read("open")
    who = scene.end("commit", name, who, True)
    scene.describe("done", name)
    scene.read("committed")
    scene.produce("next", name, who)
    scene.ask("offsets", offsets_request(name, who, "group-two", {("data", 0): 7}), 5)
    scene.committed("open", "group-two")
    scene.describe("with offsets", name)
    who = scene.end("abort", name, who, False)
    scene.committed("aborted", "group-two")
    scene.read("aborted")
    scene.ask("offsets again", offsets_request(name, who, "group-two", {("data", 0): 8}), 5)
    who = scene.end("commit offsets", name, who, True)
    scene.committed("committed", "group-two")


def _version_2_ends(scene: Scene) -> None:
    """The table of Kafka's EndTxn v5: repeated, current and other epochs in each state."""
    for commit in (True, False):
        for state in ("empty", "open", "committed", "aborted"):
            for shift in (-2, -1, 0, 1):
                name = f"end-{state}-{commit}-{shift}"
                who = scene.init(name, name)
                if state in ("open", "committed", "aborted"):
                    scene.produce(name, name, who, topic="more")
                if state in ("committed", "aborted"):
                    who = scene.end(f"{name} first", name, who, state == "committed")
                scene.end(f"{name} then", name, Identity(who.producer_id, who.epoch + shift), commit)
                scene.describe(name, name)


def _classic_ends(scene: Scene) -> None:
    for version in (1, 2, 4):
        for commit in (True, False):
            for state in ("empty", "open", "committed", "aborted"):
                for shift in (-1, 0, 1):
                    name = f"end{version}-{state}-{commit}-{shift}"
                    who = scene.init(name, name)
                    if state in ("open", "committed", "aborted"):
                        scene.add(name, name, who, {"more": [1]})
                    if state in ("committed", "aborted"):
                        scene.end(f"{name} first", name, who, state == "committed", version)
                    scene.end(f"{name} then", name, Identity(who.producer_id, who.epoch + shift), commit, version)
                    scene.describe(name, name)


def _foreigners(scene: Scene) -> None:
    """Unknown names, ids of others, epochs of the past and the future, in each request and version."""
    name = "foreign"
    scene.init("first", name)
    scene.init("second", name)
    who = scene.init("third", name)
    others = {
        "unknown name": ("unknown", who),
        "empty name": ("", who),
        "other producer": (name, Identity(NOBODY.producer_id, who.epoch)),
        "older epoch": (name, Identity(who.producer_id, who.epoch - 1)),
        "newer epoch": (name, Identity(who.producer_id, who.epoch + 1)),
        "negative epoch": (name, Identity(who.producer_id, -1)),
    }
    for label, (as_name, as_who) in others.items():
        for version in range(6):
            scene.add(f"{label} v{version}", as_name, as_who, {"more": [0]}, version)
            scene.end(f"{label} v{version}", as_name, as_who, True, version)
            request = offsets_request(as_name, as_who, "group-foreign", {("data", 0): 1})
            scene.ask(f"offsets {label} v{version}", request, version)
        for version in range(5):
            scene.ask(f"add offsets {label} v{version}", add_offsets_request(as_name, as_who, "g"), version)
        for version in (9, 10, 11, 12) if as_who.epoch >= 0 else ():
            scene.produce(f"{label} v{version}", as_name, as_who, version=version, topic="hang")
        scene.init(label, as_name, expected=as_who)
    for version in (0, 3, 5):
        scene.add(f"unknown topic v{version}", name, who, {"gone": [0], "more": [0, 9]}, version)
        scene.add(f"nothing v{version}", name, who, {}, version)
    scene.describe("what is left", name)


def _fencing(scene: Scene) -> None:
    """A second instance takes over while the first has a transaction open."""
    for version in (1, 2):
        name = f"fenced{version}"
        old = scene.init(f"{version} first", name)
        if version == 1:
            scene.add(f"{version}", name, old, {"more": [2]})
        scene.produce(f"{version}", name, old, "more", version=10 + version, partition=2)
        new = scene.init(f"{version} second", name)
        scene.describe(f"{version}", name)
        scene.read(f"{version}", "more", 2)
        for api_version in (1, 2, 3):
            scene.add(f"{version} zombie v{api_version}", name, old, {"more": [2]}, api_version)
            scene.end(f"{version} zombie v{api_version}", name, old, True, api_version)
        scene.end(f"{version} zombie v5", name, old, True, 5)
        scene.end(f"{version} zombie v5 abort", name, old, False, 5)
        for api_version in (9, 11, 12):
            scene.produce(f"{version} zombie v{api_version}", name, old, "more", api_version, partition=2, sequence=1)
        for api_version in (3, 4, 5):
            scene.init(f"{version} zombie v{api_version}", name, api_version, expected=old)
        scene.produce(f"{version} new", name, new, "more", partition=2)
        scene.end(f"{version} new", name, new, True)


def _recovery(scene: Scene) -> None:
    """KIP-360: a producer that met an error goes on under a new epoch."""
    name = "recovering"
    who = scene.init("first", name)
    again = scene.init("bumped", name, expected=who)
    scene.init("the answer was lost", name, expected=who)
    scene.init("older still", name, expected=Identity(who.producer_id, who.epoch - 1))
    scene.init("from the future", name, expected=Identity(again.producer_id, again.epoch + 1))
    scene.init("a new instance", name)
    scene.init("after a new instance", name, expected=again)
    who = scene.init("once more", name)
    scene.produce("open", name, who, "more", partition=2)
    scene.init("with a transaction open", name, expected=who)
    scene.describe("at the end", name)


def _batched(scene: Scene) -> None:
    """What brokers ask each other: several transactions in one request, or only whether partitions belong."""
    who = scene.init("batched", "batched")
    for version in (4, 5):
        scene.add(f"verify before v{version}", "batched", who, {"more": [0]}, version, verify=True)
    scene.add("batched", "batched", who, {"more": [0]}, 4)
    scene.describe("batched", "batched")
    scene.add("verify", "batched", who, {"more": [0, 1]}, 4, verify=True)
    one = add_request("batched", who, {"more": [1]}).transactions[0]
    other = add_request("unknown", who, {"more": [1]}).transactions[0]
    scene.ask("add two", m.AddPartitionsToTxnRequest(transactions=[one, other]), 5)
    scene.end("batched", "batched", who, False)


def _produce(scene: Scene) -> None:
    name = "producing"
    who = scene.init("first", name)
    for version in (9, 10, 11):
        scene.produce(f"not added v{version}", name, who, "hang", version)
    for version in (9, 11, 12):
        scene.produce(f"without a name v{version}", None, who, "hang", version)
        scene.produce(f"another name v{version}", "other", who, "hang", version)
        if version == 12:
            # Before that Kafka finds first that the partition was not added.
            scene.produce(f"control v{version}", name, who, "hang", version, control=True)
        plain = batch_of(b"plain", producer_id=who.producer_id, producer_epoch=who.epoch, base_sequence=0)
        if version == 11:
            scene.ask("plain from the same producer", produce_request(name, plain, "hang", 2), version)
    scene.produce("to an internal topic", name, who, "__transaction_state")
    scene.produce("to offsets", name, who, "__consumer_offsets")
    scene.produce("v12", name, who, "hang")
    scene.produce("v12 repeated", name, who, "hang")
    scene.produce("v12 out of order", name, who, "hang", sequence=7)
    plain = batch_of(b"plain", producer_id=who.producer_id, producer_epoch=who.epoch, base_sequence=1)
    scene.ask("plain inside a transaction", produce_request(name, plain, "hang"), 12)
    scene.produce("newer epoch", name, Identity(who.producer_id, who.epoch + 1), "hang")
    scene.read("open", "hang")
    who = scene.end("commit", name, who, True)
    scene.produce("older epoch", name, Identity(who.producer_id, who.epoch - 1), "hang", sequence=1)
    scene.produce("not from the start", name, who, "hang", sequence=3)
    scene.read("committed", "hang")
    scene.describe("at the end", name)


def _first_batches(scene: Scene) -> None:
    """Of a producer that the partition has never heard of."""
    name = "beginning"
    who = scene.init("first", name)
    scene.produce("v12 not from 0", name, who, "firsts", partition=0, sequence=3)
    scene.produce("v12 from 0", name, who, "firsts", partition=0)
    who = scene.end("end", name, who, True)
    scene.produce("v12 again not from 0", name, who, "firsts", partition=0, sequence=3)
    who = scene.end("abort", name, who, False)
    scene.produce("v12 elsewhere not from 0", name, who, "firsts", partition=1, sequence=1)
    scene.end("abort of nothing", name, who, False)
    name = "beginning-classic"
    who = scene.init("classic", name)
    scene.produce("v11 not added, later", name, who, "firsts", 11, partition=2, sequence=5)
    scene.produce("v11 not added, earlier", name, who, "firsts", 11, partition=2, sequence=3)
    scene.add("added", name, who, {"firsts": [2, 3]})
    scene.produce("v11 later", name, who, "firsts", 11, partition=2, sequence=5)
    scene.produce("v11 earlier", name, who, "firsts", 11, partition=2, sequence=3)
    scene.produce("v11 next", name, who, "firsts", 11, partition=2, sequence=4)
    scene.produce("v11 not from 0", name, who, "firsts", 11, partition=3, sequence=7)
    scene.end("classic end", name, who, True, 3)
    plain = scene.init("plain", None)
    for partition, sequence in ((4, 5), (4, 6), (4, 4)):
        sent = batch_of(b"x", producer_id=plain.producer_id, producer_epoch=plain.epoch, base_sequence=sequence)
        scene.ask(f"plain {sequence}", produce_request(None, sent, "firsts", partition), 12)
    for partition in range(5):
        scene.read(f"at the end {partition}", "firsts", partition)


def _offsets(scene: Scene) -> None:
    name = "offsetting"
    who = scene.init("first", name)
    for version in range(6):
        request = offsets_request(name, who, "group-o", {("data", 0): 1, ("gone", 0): 1, ("data", 99): 1})
        scene.ask(f"outside v{version}", request, version)
    for version in (3, 4, 5):
        for generation, member in ((0, "x"), (5, ""), (-1, "x"), (5, "x")):
            request = offsets_request(name, who, "group-p", {("data", 0): 1}, generation=generation, member=member)
            scene.ask(f"as {member!r} of {generation} v{version}", request, version)
        scene.ask(f"no group v{version}", offsets_request(name, who, "", {("data", 0): 1}), version)
    scene.describe("open", name)
    scene.ask("add offsets without a group", add_offsets_request(name, who, ""), 3)
    scene.end("commit", name, who, True)
    scene.committed("at the end", "group-o")


def _offsets_of_deleted_topics(scene: Scene) -> None:
    """Also those that wait for the end of a transaction go with their topic."""

    def committed() -> list[int]:
        asked = m.OffsetFetchRequest
        topics = [asked.OffsetFetchRequestTopics(name="short", partition_indexes=[0, 1])]
        wanted = [asked.OffsetFetchRequestGroup(group_id="group-d", topics=topics)]
        (group,) = scene.client.call(asked(groups=wanted), 8).groups
        return [one.committed_offset for topic in group.topics for one in topic.partitions]

    def create() -> None:
        topic = m.CreateTopicsRequest.CreatableTopic(name="short", num_partitions=2, replication_factor=1)
        answer = retried(scene.client, m.CreateTopicsRequest(topics=[topic], timeout_ms=20_000), 4)
        assert not any(all_codes(answer))

    name = "deleting"
    create()
    who = scene.init("first", name)
    before = scene.init("before", "deleting-before")
    retried(scene.client, offsets_request("deleting-before", before, "group-d", {("short", 1): 7}), 5)
    scene.end("before", "deleting-before", before, True)
    scene.note("committed", committed())
    scene.ask("pending", offsets_request(name, who, "group-d", {("short", 0): 42}), 5)
    state = m.DeleteTopicsRequest.DeleteTopicState(name="short")
    scene.client.call(m.DeleteTopicsRequest(topics=[state], timeout_ms=20_000), 6)
    while committed() != [-1, -1]:
        time.sleep(0.05)  # Kafka's coordinator hears of it a little later
    create()
    scene.end("after", name, who, True)
    scene.note("of the new topic", committed())


def _markers(scene: Scene) -> None:
    """Left out: a marker of an older epoch, for which Kafka has UNKNOWN_SERVER_ERROR and we INVALID_PRODUCER_EPOCH."""

    def write(label: str, who: Identity, commit: bool, version: int, **more: Any) -> None:
        asked = m.WriteTxnMarkersRequest
        partitions = more.pop("partitions", [1])
        topics = [asked.WritableTxnMarkerTopic(name=more.pop("topic", "hang"), partition_indexes=partitions)]
        marker = asked.WritableTxnMarker(
            producer_id=who.producer_id,
            producer_epoch=who.epoch,
            transaction_result=commit,
            topics=topics,
            **{"coordinator_epoch": 0, **more},
        )
        scene.ask(f"marker {label}", asked(markers=[marker]), version)

    name = "marked"
    who = scene.init("first", name)
    scene.produce("open", name, who, "hang", partition=1)
    scene.read("open", "hang", 1)
    write("for unknown partitions", who, False, 1, partitions=[1, 9], topic="gone")
    write("for an unknown partition", who, False, 1, partitions=[9])
    write("of version 2 with the same epoch", who, False, 2, transaction_version=2)
    scene.read("still open", "hang", 1)
    write("of an older coordinator", who, False, 1, coordinator_epoch=-1)
    scene.read("by hand", "hang", 1)
    write("again", who, False, 2)
    write("of nobody", NOBODY, True, 1)
    write("of version 2 with a newer epoch", Identity(who.producer_id, who.epoch + 1), False, 2, transaction_version=2)
    scene.read("after all", "hang", 1)
    scene.describe("does not know", name)


def _internal_topics(scene: Scene) -> None:
    """They are not a client's to write to, with or without a transaction."""
    for version in range(6):
        name = f"internal{version}"
        who = scene.init(name, name)
        wanted: Partitions = {"__consumer_offsets": [0], "__transaction_state": [0], "more": [0]}
        scene.add(f"v{version}", name, who, wanted, version)
        scene.add(f"missing v{version}", name, who, {"__consumer_offsets": [7], "more": [0]}, version)
        scene.describe(f"v{version}", name)
        scene.end(f"v{version}", name, who, True, version)
        scene.describe(f"at the end v{version}", name)


def _lists(scene: Scene) -> None:
    who = scene.init("open", "listed-open")
    scene.produce("open", "listed-open", who, "more")
    scene.init("empty", "listed-empty")
    for version in range(3):
        scene.list(f"v{version}", version, state_filters=["Ongoing"])
    scene.list("by producer", producer_id_filters=[who.producer_id])
    scene.list("by nobody", producer_id_filters=[NOBODY.producer_id])
    scene.list("unknown states", state_filters=["Ongoing", "ongoing", "Nonsense", "Dead", "PrepareEpochFence"])
    scene.list("by pattern", transactional_id_pattern="listed-.*")
    scene.list("by part of a pattern", transactional_id_pattern="listed")
    scene.list("by a broken pattern", transactional_id_pattern="listed-(")
    scene.list("by an empty pattern", transactional_id_pattern="", state_filters=["Ongoing"])
    scene.list("young", duration_filter=0, transactional_id_pattern="(listed|two).*")
    scene.list("old", duration_filter=3_600_000, transactional_id_pattern="(listed|two).*")
    scene.list("any age", duration_filter=-1, transactional_id_pattern="listed.*")
    scene.list("negative", duration_filter=-7, transactional_id_pattern="listed.*")
    scene.end("open", "listed-open", who, False)


def _version_1(scene: Scene) -> None:
    """The same broker after transaction.version was set to 1: epochs are no longer bumped on behalf of clients."""
    update = m.UpdateFeaturesRequest.FeatureUpdateKey(
        feature="transaction.version", max_version_level=1, upgrade_type=2
    )
    scene.ask("downgrade", m.UpdateFeaturesRequest(feature_updates=[update], timeout_ms=10_000), 2)
    time.sleep(0.5)
    name = "one"
    old = scene.init("first", name)
    scene.add("first", name, old, {"tv1data": [0]})
    scene.produce("first", name, old, "tv1data", 11)
    new = scene.init("second", name)
    scene.describe("fenced", name)
    scene.init("zombie", name, expected=old)
    scene.end("zombie", name, old, True, 4)
    scene.add("new", name, new, {"tv1data": [0]})
    scene.produce("new", name, new, "tv1data", 11)
    scene.end("new", name, new, True, 4)
    scene.produce("v12", name, new, "tv1data", 12, sequence=1)
    scene.describe("v12", name)
    after = scene.end("v5", name, new, True, 5)
    scene.produce("v12 at the next epoch", name, after, "tv1data", 12)
    scene.init("owner with a transaction open", name, expected=after)
    scene.read("at the end", "tv1data")
    scene.describe("at the end", name)


def _state_log(scene: Scene) -> None:
    """What was written down, of a few."""
    offset, wanted = 0, {"classic0", "classic1", "two", "fenced1", "fenced2", "recovering", "one", "offsets1"}
    records: dict[str, list[Any]] = {}
    while True:
        request = fetch_request([("__transaction_state", 0, offset)], max_wait_ms=0, min_bytes=0)
        data = bytes(scene.client.call(request, 12).responses[0].partitions[0].records or b"")
        if not data:
            break
        for position, header in iterate_batches(data):
            offset = header.last_offset + 1
            for record in read_records(data, position) if not header.is_control else ():
                assert record.key is not None
                assert record.value is not None
                key: Any = codec.decode("TransactionLogKey", 0, record.key, 2)
                if key.transactional_id not in wanted:
                    continue
                version = int.from_bytes(record.value[:2], "big")
                value: Any = codec.decode("TransactionLogValue", version, record.value, 2)
                value.transaction_last_update_timestamp_ms = 0
                value.transaction_start_timestamp_ms = min(value.transaction_start_timestamp_ms, 1)
                records.setdefault(key.transactional_id, []).append([version, scene.plain(value)])
    for name, values in records.items():
        scene.note(name, values)


def record() -> None:
    from tests.support.kafka_peer import KafkaPeer

    with (
        tempfile.TemporaryDirectory() as folder,
        KafkaPeer(Path(folder), PROPERTIES) as kafka,
        RawClient.to(kafka.bootstrap) as client,
    ):
        answers = transcript(client)
    lines = [f"{json.dumps(label)}: {json.dumps(answer)}" for label, answer in answers.items()]
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    sys.exit(record())
