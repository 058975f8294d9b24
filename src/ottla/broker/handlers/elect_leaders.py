"""ElectLeaders v0-2. With one broker its partitions have their leader already, so no election is ever needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.context import RequestContext
from ottla.common.errors import ErrorCode
from ottla.protocol.messages import ElectLeadersRequest, ElectLeadersResponse

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

    Result = ElectLeadersResponse.PartitionResult

_PREFERRED, _UNCLEAN = 0, 1


def handle(broker: Broker, context: RequestContext, request: ElectLeadersRequest) -> ElectLeadersResponse:
    topic_class = ElectLeadersResponse.ReplicaElectionResult
    if request.election_type not in (_PREFERRED, _UNCLEAN):
        wrong = f"Unknown election type {request.election_type}"
        return ElectLeadersResponse(
            error_code=ErrorCode.INVALID_REQUEST,
            replica_election_results=[
                topic_class(
                    topic=one.topic,
                    partition_result=[_result(index, ErrorCode.INVALID_REQUEST, wrong) for index in one.partitions],
                )
                for one in request.topic_partitions or ()
            ],
        )
    if request.topic_partitions is None:  # all: tells only what was elected
        return ElectLeadersResponse(
            replica_election_results=[topic_class(topic=name, partition_result=()) for name in broker.image.topics]
        )
    return ElectLeadersResponse(
        replica_election_results=[
            topic_class(
                topic=one.topic,
                partition_result=[_elect(broker, one.topic, index) for index in one.partitions],
            )
            for one in request.topic_partitions
        ]
    )


def _elect(broker: Broker, name: str, index: int) -> Result:
    topic = broker.image.topics.get(name)
    if topic is None:
        return _result(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}")
    if not 0 <= index < len(topic.partitions):
        return _result(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{index}")
    return _result(index, ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition.")


def _result(index: int, code: ErrorCode, message: str) -> Result:
    return ElectLeadersResponse.PartitionResult(partition_id=index, error_code=code, error_message=message)
