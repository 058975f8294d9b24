"""AlterPartition v2-3 (KIP-497, KIP-841, KIP-903): a leader asks for another ISR. Kafka's checks, in Kafka's order.

For the whole request: STALE_BROKER_EPOCH unless the broker is live by this registration.
For each partition:
 1. UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION
 2. NOT_CONTROLLER if the leader knows a later leader or partition epoch than we do: somebody else decides by now
 3. FENCED_LEADER_EPOCH if it knows an earlier leader epoch
 4. INVALID_REQUEST if it is not the leader
 5. INVALID_UPDATE_VERSION if it knows an earlier partition epoch: it decided by what is not true any more
 6. INVALID_REQUEST if the ISR is empty, has somebody twice, somebody who is no replica, or not the leader; or if the
    leader says that it recovers from an unclean election, which no leader of ours does
 7. INELIGIBLE_REPLICA if a member is not live, is stopping, has lost its log directory, or is not the registration that
    the leader has seen catch up (v3; -1, and all of v2, is not compared)
What is left goes through `settle`: the ELR follows, a reassignment may be complete. Where that makes somebody else the
leader, the answer is NEW_LEADER_ELECTED though the change is made.

An answer must not leave before the change is in the store.
"""

from __future__ import annotations

from dataclasses import replace

from ottla.common.errors import ErrorCode
from ottla.common.ids import TopicId
from ottla.controller.rules import Rules, min_insync_in_force
from ottla.controller.settling import settle
from ottla.controller.standing import Standing, standing
from ottla.metadata.image import ClusterImage, PartitionImage, TopicImage
from ottla.protocol.messages import AlterPartitionRequest, AlterPartitionResponse

Asked = AlterPartitionRequest.PartitionData
Answer = AlterPartitionResponse.PartitionData

_RECOVERED = 0
_ANY_EPOCH = -1


def alter_partition(
    image: ClusterImage, request: AlterPartitionRequest, rules: Rules
) -> tuple[AlterPartitionResponse, dict[str, TopicImage]]:
    """The answer, and the topics that change."""
    broker = image.brokers.get(request.broker_id)
    if broker is None or broker.epoch != request.broker_epoch:
        return AlterPartitionResponse(error_code=ErrorCode.STALE_BROKER_EPOCH, topics=()), {}
    brokers, answers = standing(image), []
    changed: dict[str, TopicImage] = {}
    for asked in request.topics:
        topic = image.topics_by_id.get(TopicId(asked.topic_id))
        if topic is None:
            unknown = [_error(wanted, ErrorCode.UNKNOWN_TOPIC_ID) for wanted in asked.partitions]
            answers.append(AlterPartitionResponse.TopicData(topic_id=asked.topic_id, partitions=unknown))
            continue
        # One that is named twice builds on itself: the second time its epoch is an old one.
        topic = changed.get(topic.name, topic)
        partitions = list(topic.partitions)
        outcomes = [
            _alter(image, topic, partitions, request.broker_id, wanted, brokers, rules) for wanted in asked.partitions
        ]
        if any(new is not old for new, old in zip(partitions, topic.partitions, strict=True)):
            changed[topic.name] = replace(topic, partitions=tuple(partitions))
        answers.append(AlterPartitionResponse.TopicData(topic_id=asked.topic_id, partitions=outcomes))
    return AlterPartitionResponse(topics=answers), changed


def _alter(
    image: ClusterImage,
    topic: TopicImage,
    partitions: list[PartitionImage],
    leader: int,
    wanted: Asked,
    brokers: Standing,
    rules: Rules,
) -> Answer:
    """Changes its place in `partitions` if it may."""
    index = wanted.partition_index
    if not 0 <= index < len(partitions):
        return _error(wanted, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    before, members = partitions[index], _members(wanted)
    isr = tuple(member for member, _ in members)
    fault = _fault(before, leader, wanted, isr)
    if fault is not None:
        return _error(wanted, fault)
    if not all(_may_join(image, before, leader, member, epoch, brokers) for member, epoch in members):
        return _error(wanted, ErrorCode.INELIGIBLE_REPLICA)
    after = partitions[index] = settle(
        before,
        brokers,
        min_insync=min_insync_in_force(topic, rules),
        unclean=rules.unclean_election(topic),
        target=replace(before, isr=isr),
    )
    if after.leader != leader:
        return _error(wanted, ErrorCode.NEW_LEADER_ELECTED)
    return AlterPartitionResponse.PartitionData(
        partition_index=index,
        leader_id=after.leader,
        leader_epoch=after.leader_epoch,
        isr=after.isr,
        leader_recovery_state=_RECOVERED,
        partition_epoch=after.partition_epoch,
    )


def _members(wanted: Asked) -> list[tuple[int, int]]:
    """Pairs of broker and broker epoch. An ISR is never empty, so the one that is filled tells the version."""
    if wanted.new_isr_with_epochs:
        return [(member.broker_id, member.broker_epoch) for member in wanted.new_isr_with_epochs]
    return [(member, _ANY_EPOCH) for member in wanted.new_isr]


def _fault(partition: PartitionImage, leader: int, wanted: Asked, isr: tuple[int, ...]) -> ErrorCode | None:
    if wanted.leader_epoch > partition.leader_epoch or wanted.partition_epoch > partition.partition_epoch:
        return ErrorCode.NOT_CONTROLLER
    if wanted.leader_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if leader != partition.leader:
        return ErrorCode.INVALID_REQUEST
    if wanted.partition_epoch < partition.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    is_valid = leader in isr and len(set(isr)) == len(isr) and set(isr) <= set(partition.replicas)
    return None if is_valid and wanted.leader_recovery_state == _RECOVERED else ErrorCode.INVALID_REQUEST


def _may_join(
    image: ClusterImage, partition: PartitionImage, leader: int, member: int, epoch: int, brokers: Standing
) -> bool:
    known = image.brokers.get(member)
    if known is None or member in partition.offline:
        return False
    # A leader that is stopping may say who could take over.
    if member in brokers.stopping and member != leader:
        return False
    return epoch in (_ANY_EPOCH, known.epoch)


def _error(wanted: Asked, code: ErrorCode) -> Answer:
    return AlterPartitionResponse.PartitionData(partition_index=wanted.partition_index, error_code=code)
