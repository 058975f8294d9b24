"""The image as a fold over nodes: whatever changed, and in whatever pieces, it is the image of what the store holds."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from ottla.common.ids import TopicId
from ottla.metadata import nodes
from ottla.metadata.folding import known_node, with_nodes
from ottla.metadata.image import (
    BrokerImage,
    ClusterImage,
    ConfigKind,
    PartitionImage,
    Registration,
    TopicImage,
    reachable,
)

EMPTY = ClusterImage("cluster")


def refuse(path: str, error: Exception) -> None:
    raise AssertionError(path) from error


def topic(name: str, chance: random.Random) -> TopicImage:
    partitions = []
    for _ in range(chance.randint(1, 4)):
        replicas = tuple(chance.sample(range(1, 6), 3))
        isr = tuple(chance.sample(replicas, chance.randint(0, 3)))
        partitions.append(
            PartitionImage(
                leader=chance.choice([-1, *isr]),
                leader_epoch=chance.randint(0, 5),
                partition_epoch=chance.randint(0, 9),
                replicas=replicas,
                isr=isr,
                elr=tuple(member for member in replicas if member not in isr and chance.random() < 0.3),
                last_known_leader=chance.choice([-1, 1]),
                adding=replicas[:1] if chance.random() < 0.2 else (),
                removing=replicas[2:] if chance.random() < 0.2 else (),
            )
        )
    return TopicImage(name, TopicId(chance.randbytes(16)), tuple(partitions), {"retention.ms": "5"})


def change(store: dict[str, bytes], chance: random.Random) -> str:
    """Change one node of the store; its path."""
    number = chance.randint(1, 4)
    kind = chance.choice(["topic", "broker", "epoch", "config", "controller", "features", "producers"])
    if kind == "topic":
        path, data = nodes.topic_path(f"t{number}"), nodes.encode_topic(topic(f"t{number}", chance))
    elif kind == "broker":
        image = BrokerImage(number, "rack", {"PLAINTEXT": ("host", 9092)}, chance.randint(1, 2))
        path, data = nodes.broker_path(number), nodes.encode_broker(image, "process", "folder")
    elif kind == "epoch":
        path = nodes.broker_epoch_path(number)
        last = nodes.decode_registration(store[path]).epoch if path in store else 1
        registration = Registration(last + chance.randint(0, 1), chance.random() < 0.7, chance.random() < 0.2)
        data = nodes.encode_registration(registration)
    elif kind == "config":
        name = chance.choice(["", "1", "a/b.c"])
        path = nodes.configs_path(chance.choice([ConfigKind.BROKER, ConfigKind.GROUP]), name or "1")
        data = nodes.encode({"key": str(chance.randint(0, 3))})
    elif kind == "controller":
        path, data = nodes.CONTROLLER, nodes.encode({"broker": number, "epoch": chance.randint(1, 9)})
    elif kind == "features":
        path, data = nodes.FEATURES, nodes.encode({"levels": {"x": number}, "epoch": number})
    else:
        path = nodes.PRODUCER_IDS
        before = nodes.decode(store[path])["next"] if path in store else 0
        data = nodes.encode({"next": before + chance.randint(0, 9)})
    if chance.random() < 0.25 and path not in (nodes.FEATURES, nodes.PRODUCER_IDS) and kind != "epoch":
        store.pop(path, None)
    else:
        store[path] = data
    return path


def facts(image: ClusterImage) -> dict[str, Any]:
    fields = {name: getattr(image, name) for name in image.__dataclass_fields__}
    fields.pop("missing")  # as what follows: only those know it who have seen it
    if image.controller == -1:
        fields.pop("controller_epoch")  # of one that is gone: only those know it who have seen it
    return fields


@pytest.mark.parametrize("seed", range(40))
def test_pieces_in_any_number_give_what_one_look_gives(seed: int) -> None:
    chance = random.Random(seed)
    store: dict[str, bytes] = {}
    image, unread = EMPTY, set()
    for _ in range(120):
        unread.add(change(store, chance))
        if chance.random() < 0.5:
            image = with_nodes(image, {path: store.get(path) for path in sorted(unread)}, refuse)
            unread.clear()
    image = with_nodes(image, {path: store.get(path) for path in sorted(unread)}, refuse)
    at_once = with_nodes(EMPTY, store, refuse)
    assert facts(image) == facts(at_once)
    assert image.topics_by_id == {found.id: found for found in image.topics.values()}


def test_what_did_not_change_stays_the_same_object() -> None:
    store: dict[str, bytes] = {}
    chance = random.Random(1)
    while len(store) < 15:
        change(store, chance)
    image = with_nodes(EMPTY, store, refuse)
    assert with_nodes(image, store, refuse) is image
    name = next(iter(image.topics))
    other = with_nodes(image, {nodes.topic_path(name): nodes.encode_topic(topic(name, chance))}, refuse)
    assert other.topics is not image.topics
    assert all(other.topics[kept] is image.topics[kept] for kept in image.topics if kept != name)
    assert other.brokers is image.brokers and other.broker_configs is image.broker_configs


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"7", b'{"id": 1}', b"\xff\xfe", b'{"endpoints": []}'])
@pytest.mark.parametrize("path", ["/topics/t", "/brokers/1", "/broker_epochs/1", "/controller", "/features"])
def test_a_damaged_node_is_passed_over_and_told(path: str, data: bytes) -> None:
    told: list[str] = []
    known = with_nodes(EMPTY, {"/topics/kept": nodes.encode_topic(topic("kept", random.Random(2)))}, refuse)
    image = with_nodes(known, {path: data}, lambda damaged, _: told.append(damaged))
    assert told == [path]
    assert image.topics == known.topics


@pytest.mark.parametrize(
    "older",
    [
        {"leader_epoch": 4, "partition_epoch": 9},
        {"leader_epoch": 5, "partition_epoch": 8},
    ],
)
def test_an_older_copy_that_somebody_wrote_back_is_passed_over_and_told(older: dict[str, int]) -> None:
    """Replicas that were in sync then need not be now."""
    now = PartitionImage(2, 5, 9, (1, 2), (2,))
    known = TopicImage("t", TopicId(bytes(16)), (now, now))
    image = with_nodes(EMPTY, {"/topics/t": nodes.encode_topic(known)}, refuse)
    told: list[str] = []
    for copy in (
        replace(known, partitions=(now, replace(now, isr=(1, 2), **older))),
        replace(known, partitions=(now,)),
    ):
        stale = {"/topics/t": nodes.encode_topic(copy)}
        assert with_nodes(image, stale, lambda _, why: told.append(str(why))) is image
    assert len(told) == 2 and all("older copy" in why for why in told)
    assert known_node(image, "/topics/t") == nodes.encode_topic(known)
    made_anew = replace(known, id=TopicId(b"x" * 16), partitions=(replace(now, leader_epoch=0, partition_epoch=0),))
    assert with_nodes(image, {"/topics/t": nodes.encode_topic(made_anew)}, refuse).topics["t"] == made_anew


def test_an_older_copy_of_a_registration_is_passed_over_and_told() -> None:
    path = nodes.broker_epoch_path(1)
    image = with_nodes(EMPTY, {path: nodes.encode_registration(Registration(3, True))}, refuse)
    told: list[str] = []
    stale = {path: nodes.encode_registration(Registration(2, True))}
    assert with_nodes(image, stale, lambda damaged, _: told.append(damaged)) is image
    assert told == [path]
    assert known_node(image, path) == nodes.encode_registration(Registration(3, True))


def test_producer_ids_never_go_back() -> None:
    image = with_nodes(EMPTY, {nodes.PRODUCER_IDS: b'{"next": 5000}'}, refuse)
    told: list[str] = []
    assert with_nodes(image, {nodes.PRODUCER_IDS: b'{"next": 4000}'}, lambda path, _: told.append(path)) is image
    assert told == [nodes.PRODUCER_IDS]
    assert nodes.decode(known_node(image, nodes.PRODUCER_IDS) or b"") == {"next": 5000}


def test_a_broker_counts_that_is_there_and_taken_in_as_what_it_is() -> None:
    broker = BrokerImage(1, None, {}, 2)
    present = {nodes.broker_path(1): nodes.encode_broker(broker, "process", "folder")}
    for registration, counts in [
        (Registration(2, True), True),
        (Registration(2, False), False),
        (Registration(1, True), False),
        (Registration(3, True), False),
    ]:
        nodes_now = {**present, nodes.broker_epoch_path(1): nodes.encode_registration(registration)}
        assert (1 in with_nodes(EMPTY, nodes_now, refuse).brokers) == counts
    assert not with_nodes(
        EMPTY, {nodes.broker_epoch_path(1): nodes.encode_registration(Registration(2, True))}, refuse
    ).brokers


def test_clients_are_told_of_a_broker_until_the_controller_has_fenced_it() -> None:
    """Else they would be told of nobody when all sessions end at once, as after a long absence of the store."""

    def changed(image: ClusterImage, path: str, data: bytes | None) -> ClusterImage:
        return with_nodes(image, {path: data}, refuse)

    def told(image: ClusterImage) -> list[tuple[int, int]]:
        return [(broker.id, port) for broker, (_, port) in reachable(image, "PLAINTEXT")]

    def registered(number: int, epoch: int, port: int) -> bytes:
        return nodes.encode_broker(BrokerImage(number, None, {"PLAINTEXT": ("h", port)}, epoch), "process", "folder")

    def epoch_node(epoch: int, is_active: bool) -> bytes:
        return nodes.encode_registration(Registration(epoch, is_active))

    image = EMPTY
    for number in (1, 2):
        image = changed(image, nodes.broker_epoch_path(number), epoch_node(1, True))
        image = changed(image, nodes.broker_path(number), registered(number, 1, 9090 + number))
    for number in (1, 2):
        image = changed(image, nodes.broker_path(number), None)
    assert not image.brokers, "nobody counts on them"
    assert told(image) == [(1, 9091), (2, 9092)]
    image = changed(image, nodes.broker_epoch_path(1), epoch_node(2, False))
    image = changed(image, nodes.broker_path(1), registered(1, 2, 9191))
    assert told(image) == [(1, 9091), (2, 9092)], "it waits to be taken in"
    image = changed(image, nodes.broker_epoch_path(1), epoch_node(2, True))
    assert told(image) == [(1, 9191), (2, 9092)]
    image = changed(image, nodes.broker_epoch_path(2), epoch_node(1, False))
    assert told(image) == [(1, 9191)]
    assert not image.missing
