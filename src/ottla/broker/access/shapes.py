"""Answers that say no in the form of each API: the same names and numbers as asked for, with an error beside them."""

from __future__ import annotations

from typing import Any

from ottla.common.errors import ErrorCode
from ottla.protocol import messages as m

_NOT_AUTHORIZED = "Authorization failed."

# --- one topic of an answer, from the same topic of the request


def list_offsets_topic(topic: Any, code: ErrorCode) -> m.ListOffsetsResponse.ListOffsetsTopicResponse:
    line = m.ListOffsetsResponse.ListOffsetsPartitionResponse
    lines = [line(partition_index=partition.partition_index, error_code=code) for partition in topic.partitions]
    return m.ListOffsetsResponse.ListOffsetsTopicResponse(name=topic.name, partitions=lines)


def epoch_topic(topic: Any, code: ErrorCode) -> m.OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult:
    line = m.OffsetForLeaderEpochResponse.EpochEndOffset
    lines = [line(partition=partition.partition, error_code=code) for partition in topic.partitions]
    return m.OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult(topic=topic.topic, partitions=lines)


def committed_topic(topic: Any, code: ErrorCode) -> m.OffsetCommitResponse.OffsetCommitResponseTopic:
    line = m.OffsetCommitResponse.OffsetCommitResponsePartition
    lines = [line(partition_index=partition.partition_index, error_code=code) for partition in topic.partitions]
    return m.OffsetCommitResponse.OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=lines)


def txn_committed_topic(topic: Any, code: ErrorCode) -> m.TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic:
    line = m.TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition
    lines = [line(partition_index=partition.partition_index, error_code=code) for partition in topic.partitions]
    return m.TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic(name=topic.name, partitions=lines)


def offset_deleted_topic(topic: Any, code: ErrorCode) -> m.OffsetDeleteResponse.OffsetDeleteResponseTopic:
    line = m.OffsetDeleteResponse.OffsetDeleteResponsePartition
    lines = [line(partition_index=partition.partition_index, error_code=code) for partition in topic.partitions]
    return m.OffsetDeleteResponse.OffsetDeleteResponseTopic(name=topic.name, partitions=lines)


def deleted_records_topic(topic: Any, code: ErrorCode) -> m.DeleteRecordsResponse.DeleteRecordsTopicResult:
    line = m.DeleteRecordsResponse.DeleteRecordsPartitionResult
    lines = [
        line(partition_index=partition.partition_index, low_watermark=-1, error_code=code)
        for partition in topic.partitions
    ]
    return m.DeleteRecordsResponse.DeleteRecordsTopicResult(name=topic.name, partitions=lines)


def producers_topic(topic: Any, code: ErrorCode) -> m.DescribeProducersResponse.TopicResponse:
    line = m.DescribeProducersResponse.PartitionResponse
    lines = [line(partition_index=index, error_code=code) for index in topic.partition_indexes]
    return m.DescribeProducersResponse.TopicResponse(name=topic.name, partitions=lines)


def added_topic(topic: Any, code: ErrorCode) -> m.AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult:
    line = m.AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult
    lines = [line(partition_index=index, partition_error_code=code) for index in topic.partitions]
    return m.AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult(name=topic.name, results_by_partition=lines)


def created_topic(name: str, code: ErrorCode, message: str) -> m.CreateTopicsResponse.CreatableTopicResult:
    return m.CreateTopicsResponse.CreatableTopicResult(name=name, error_code=code, error_message=message, configs=())


def deleted_topic(name: str | None, topic_id: Any, code: ErrorCode) -> m.DeleteTopicsResponse.DeletableTopicResult:
    return m.DeleteTopicsResponse.DeletableTopicResult(name=name, topic_id=topic_id, error_code=code)


# --- whole answers


def offsets_refused(request: Any, version: int, code: ErrorCode) -> m.OffsetFetchResponse:
    """Up to v7; version 1 has no other place for an error than each partition."""
    topic_line = m.OffsetFetchResponse.OffsetFetchResponseTopic
    line = m.OffsetFetchResponse.OffsetFetchResponsePartition
    if version >= 2:
        return m.OffsetFetchResponse(error_code=code, topics=[])
    topics = [
        topic_line(
            name=topic.name,
            partitions=[
                line(partition_index=index, committed_offset=-1, metadata="", error_code=code)
                for index in topic.partition_indexes
            ],
        )
        for topic in request.topics or ()
    ]
    return m.OffsetFetchResponse(topics=topics)


def write_txn_markers(request: Any, code: ErrorCode) -> m.WriteTxnMarkersResponse:
    row = m.WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult
    topic_line = m.WriteTxnMarkersResponse.WritableTxnMarkerTopicResult
    results = [
        m.WriteTxnMarkersResponse.WritableTxnMarkerResult(
            producer_id=marker.producer_id,
            topics=[
                topic_line(
                    name=topic.name,
                    partitions=[row(partition_index=index, error_code=code) for index in topic.partition_indexes],
                )
                for topic in marker.topics
            ],
        )
        for marker in request.markers
    ]
    return m.WriteTxnMarkersResponse(markers=results)


def alter_replica_log_dirs(request: Any, code: ErrorCode) -> m.AlterReplicaLogDirsResponse:
    line = m.AlterReplicaLogDirsResponse.AlterReplicaLogDirPartitionResult
    results = [
        m.AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult(
            topic_name=topic.name,
            partitions=[line(partition_index=index, error_code=code) for index in topic.partitions],
        )
        for directory in request.dirs
        for topic in directory.topics
    ]
    return m.AlterReplicaLogDirsResponse(results=results)


def alter_client_quotas(request: Any, code: ErrorCode) -> m.AlterClientQuotasResponse:
    entity = m.AlterClientQuotasResponse.EntityData
    return m.AlterClientQuotasResponse(
        entries=[
            m.AlterClientQuotasResponse.EntryData(
                error_code=code,
                error_message=_NOT_AUTHORIZED,
                entity=[entity(entity_type=part.entity_type, entity_name=part.entity_name) for part in entry.entity],
            )
            for entry in request.entries
        ]
    )


def alter_user_scram_credentials(request: Any, code: ErrorCode) -> m.AlterUserScramCredentialsResponse:
    line = m.AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult
    names = dict.fromkeys(change.name for change in (*request.deletions, *request.upsertions))
    return m.AlterUserScramCredentialsResponse(
        results=[line(user=name, error_code=code, error_message=_NOT_AUTHORIZED) for name in names]
    )


def describe_user_scram_credentials(request: Any, code: ErrorCode) -> m.DescribeUserScramCredentialsResponse:
    """As Kafka: once for all, and once for each that was named."""
    line = m.DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult
    return m.DescribeUserScramCredentialsResponse(
        error_code=code,
        error_message=_NOT_AUTHORIZED,
        results=[line(user=user.name, error_code=code, error_message=_NOT_AUTHORIZED) for user in request.users or ()],
    )


def create_acls(request: Any, code: ErrorCode) -> m.CreateAclsResponse:
    line = m.CreateAclsResponse.AclCreationResult(error_code=code, error_message=_NOT_AUTHORIZED)
    return m.CreateAclsResponse(results=[line] * len(request.creations))


def delete_acls(request: Any, code: ErrorCode) -> m.DeleteAclsResponse:
    line = m.DeleteAclsResponse.DeleteAclsFilterResult(error_code=code, error_message=_NOT_AUTHORIZED)
    return m.DeleteAclsResponse(filter_results=[line] * len(request.filters))
