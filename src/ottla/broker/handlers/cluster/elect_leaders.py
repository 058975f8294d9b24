"""ElectLeaders v0-2. Preferred leaders, and unclean ones where nobody else can lead (`ottla.controller` decides).

Its time-out is not looked at: an election is one write. What goes wrong as a whole is told of each partition, since v0
has no other place for it.
"""

from __future__ import annotations

from functools import partial

from ottla.broker.broker import Broker
from ottla.broker.context import RequestContext
from ottla.common.errors import ApiError
from ottla.controller.preferred import elect_leaders
from ottla.protocol.messages import ElectLeadersRequest, ElectLeadersResponse


async def handle(broker: Broker, context: RequestContext, request: ElectLeadersRequest) -> ElectLeadersResponse:
    plan, by = partial(elect_leaders, request=request, rules=broker.rules), context.requester
    try:
        return await broker.topics.change_topics(plan, by)
    except ApiError as error:
        return _failed(request, error)


def _failed(request: ElectLeadersRequest, error: ApiError) -> ElectLeadersResponse:
    topics = [
        ElectLeadersResponse.ReplicaElectionResult(
            topic=topic.topic,
            partition_result=[
                ElectLeadersResponse.PartitionResult(
                    partition_id=index, error_code=error.code, error_message=error.message
                )
                for index in topic.partitions
            ],
        )
        for topic in request.topic_partitions or ()
    ]
    return ElectLeadersResponse(error_code=error.code, replica_election_results=topics)
