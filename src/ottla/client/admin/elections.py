"""Leaders by hand: ElectLeaders, for the preferred replica or, at the price of records, for any (KIP-460).

librdkafka has the request, but confluent-kafka 2.16 fails with a SystemError as soon as a time-out is given.
"""

from __future__ import annotations

from collections.abc import Iterable

from ottla.client.cluster import ClusterClient
from ottla.common.errors import ErrorCode
from ottla.common.failures import check
from ottla.common.ids import TopicPartition, partitions_by_topic
from ottla.protocol.messages import ElectLeadersRequest

_TIMEOUT_MS = 15_000
_PREFERRED, _UNCLEAN = 0, 1


def elect_leaders(
    cluster: ClusterClient, partitions: Iterable[TopicPartition], *, unclean: bool
) -> dict[TopicPartition, str]:
    """Gives the refusals, in words. A partition that is led as it should be already is none."""
    request = ElectLeadersRequest(
        election_type=_UNCLEAN if unclean else _PREFERRED,
        topic_partitions=[
            ElectLeadersRequest.TopicPartitions(topic=topic, partitions=indexes)
            for topic, indexes in partitions_by_topic(partitions).items()
        ],
        timeout_ms=_TIMEOUT_MS,
    )

    def ask() -> dict[TopicPartition, str]:
        answer = cluster.controller().call(request)
        check(answer.error_code, "the election")
        return {
            TopicPartition(topic.topic, row.partition_id): row.error_message or ErrorCode(row.error_code).name
            for topic in answer.replica_election_results
            for row in topic.partition_result
            if row.error_code not in (ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED)
        }

    return cluster.settled(ask)
