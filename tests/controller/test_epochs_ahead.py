"""Metadata from an older backup: leader epochs are raised above those that logs know."""

from __future__ import annotations

from dataclasses import replace

from ottla.common.ids import TopicId, TopicPartition
from ottla.controller.broker_changes import reconcile
from ottla.controller.epochs_ahead import epochs_ahead
from ottla.controller.rules import Rules
from ottla.metadata import nodes
from ottla.metadata.image import BrokerImage, ClusterImage, PartitionImage, Registration, TopicImage, with_topics

RULES = Rules(min_insync_replicas=lambda _: 1, unclean_election=lambda _: False)
TOPIC = TopicImage(
    "t",
    TopicId(b"t" * 16),
    (PartitionImage(1, 3, 7, (1, 2), (1,)), PartitionImage(1, 3, 7, (1, 2), (1,))),
    min_insync=1,
)


def image(**registration: object) -> ClusterImage:
    """Broker 1 is live, broker 2 waits to be taken in."""
    brokers = {1: BrokerImage(1, None, {}, 1)}
    present = brokers | {2: BrokerImage(2, None, {}, 4)}
    waiting = replace(Registration(4, False), **registration)  # type: ignore[arg-type]
    registrations = {1: Registration(1, True), 2: waiting}
    made = ClusterImage("c", brokers=brokers, present=present, registrations=registrations)
    return with_topics(made, [TOPIC])


def test_what_is_ahead() -> None:
    latest = [(TopicPartition("t", 0), 5), (TopicPartition("t", 1), 3), (TopicPartition("gone", 0), 9)]
    assert epochs_ahead(image(), [*latest, (TopicPartition("t", 9), 9)]) == {TOPIC.id: {0: 5}}


def test_the_write_that_takes_it_in_raises_them_and_the_mark_goes() -> None:
    changes = reconcile(image(ahead={TOPIC.id: {0: 5, 9: 9}, TopicId(b"x" * 16): {0: 7}}), RULES)
    raised, untouched = changes.topics["t"].partitions
    assert (raised.leader, raised.leader_epoch, raised.isr) == (1, 6, (1,))
    assert raised.partition_epoch > 7
    assert untouched == TOPIC.partitions[1]
    assert changes.registrations[2] == Registration(4, True)


def test_who_is_not_ahead_raises_nothing() -> None:
    assert reconcile(image(ahead={TOPIC.id: {0: 2}}), RULES).topics == {}
    assert reconcile(image(), RULES).topics == {}


def test_it_is_kept_in_the_node_of_the_registration() -> None:
    known = Registration(4, False, ahead={TOPIC.id: {0: 5, 3: 1}})
    assert nodes.decode_registration(nodes.encode_registration(known)) == known
    assert b"ahead" not in nodes.encode_registration(Registration(4, False))
