"""ElectLeaders v0-2. With one broker its partitions have their leader already, so no election is ever needed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ottla.broker.broker import Broker
from ottla.broker.context import RequestContext
from ottla.common.errors import ErrorCode
from ottla.common.steps import Steps, each
from ottla.protocol.messages import ElectLeadersRequest, ElectLeadersResponse

Result = ElectLeadersResponse.PartitionResult

_PREFERRED, _UNCLEAN = 0, 1


def handle(broker: Broker, context: RequestContext, request: ElectLeadersRequest) -> Steps[ElectLeadersResponse]:
    code, elect = ErrorCode.NONE, partial(_elect, broker)
    if request.election_type not in (_PREFERRED, _UNCLEAN):
        code, elect = ErrorCode.INVALID_REQUEST, partial(_unknown_type, request.election_type)
    elif request.topic_partitions is None:  # all: tells only what was elected
        topics = yield from each(broker.image.topics, lambda name: _topic(name, ()))
        return ElectLeadersResponse(replica_election_results=topics)
    topics = []
    for topic in request.topic_partitions or ():
        results = yield from each(topic.partitions, partial(elect, topic.topic))
        topics.append(_topic(topic.topic, results))
    return ElectLeadersResponse(error_code=code, replica_election_results=topics)


def _topic(name: str, results: Sequence[Result]) -> ElectLeadersResponse.ReplicaElectionResult:
    return ElectLeadersResponse.ReplicaElectionResult(topic=name, partition_result=results)


def _unknown_type(election_type: int, name: str, index: int) -> Result:
    return _result(index, ErrorCode.INVALID_REQUEST, f"Unknown election type {election_type}")


def _elect(broker: Broker, name: str, index: int) -> Result:
    topic = broker.image.topics.get(name)
    if topic is None:
        return _result(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}")
    if not 0 <= index < len(topic.partitions):
        return _result(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{index}")
    return _result(index, ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition.")


def _result(index: int, code: ErrorCode, message: str) -> Result:
    return ElectLeadersResponse.PartitionResult(partition_id=index, error_code=code, error_message=message)
