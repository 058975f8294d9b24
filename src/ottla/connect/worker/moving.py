"""Offsets of a connector, as `GET`, `PATCH` and `DELETE /connectors/{name}/offsets` have them (KIP-875).

Those of a source are in the topic of offsets, those of a sink are its consumer group's; a target that keeps positions
of its own is told to forget them. They are changed only while the connector is STOPPED, under its producer's name, so
whoever still runs it by mistake is shut out first.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ottla.client.admin.group_offsets import commit_offsets, committed_offsets, delete_offsets
from ottla.client.cluster import ClusterClient
from ottla.client.producing import Committed, TransactionalProducer
from ottla.common.ids import TopicPartition
from ottla.connect.api.plugins import ConnectorFailure, Sink, Source
from ottla.connect.plugins import find
from ottla.connect.rounds.sink import group_of
from ottla.connect.storage import statuses
from ottla.connect.storage.batches import batches
from ottla.connect.storage.configs import STOPPED
from ottla.connect.worker.effective import effective
from ottla.connect.worker.errors import Refused
from ottla.connect.worker.operations import config_of
from ottla.connect.worker.providers import resolved
from ottla.connect.worker.worker import Worker

_PARTITION_MAX, _OFFSET_MAX = 2**31 - 1, 2**63 - 1
_NUMBER = re.compile(r"-?[0-9]{1,30}")
_ALTERED = "The offsets for this connector have been altered successfully"
_RESET = "The offsets for this connector have been reset successfully"
_NOTHING = "Partitions / offsets need to be provided for an alter offsets request"
_SINK_PARTITION = "The partition for a sink connector offset must contain the keys 'kafka_topic' and 'kafka_partition'"
_SINK_OFFSET = "The offset for a sink connector should either be null or contain the key 'kafka_offset'"


def offsets(worker: Worker, name: str) -> dict[str, Any]:
    config = config_of(worker, name)
    if find(config["connector.class"]).kind == "source":
        worker.offset_topic.read_to_end()
        rows = [{"partition": dict(one), "offset": dict(offset)} for one, offset in worker.offsets.listed(name)]
        return {"offsets": rows}
    with ClusterClient(worker.settings.client.address) as cluster:
        found = committed_offsets(cluster, _group(config, name))
    return {
        "offsets": [
            {
                "partition": {"kafka_partition": place.partition, "kafka_topic": place.topic},
                "offset": {"kafka_offset": found[place].offset},
            }
            for place in sorted(found)
        ]
    }


def alter(worker: Worker, name: str, body: Any) -> dict[str, Any]:
    rows = body.get("offsets") if isinstance(body, Mapping) else None
    if not rows or not isinstance(rows, list):
        raise Refused(400, _NOTHING)
    config = _stopped(worker, name)
    if find(config["connector.class"]).kind == "source":
        found = [_source_row(row) for row in rows]
        _check(worker, config, found)
        _write(worker, name, found)
    else:
        _move(worker, name, config, dict(sink_row(row) for row in rows))
    return {"message": _ALTERED}


def reset(worker: Worker, name: str) -> dict[str, Any]:
    config = _stopped(worker, name)
    if find(config["connector.class"]).kind == "source":
        worker.offset_topic.read_to_end()
        _write(worker, name, [(partition, None) for partition, _ in worker.offsets.listed(name)])
    else:
        with ClusterClient(worker.settings.client.address) as cluster:
            committed = committed_offsets(cluster, _group(config, name))
            # A target may know of more: a cluster forgets what was committed for a topic that is deleted.
            used = cluster.refresh(list(worker.statuses.topics.get(name, {})))
        places = [TopicPartition(topic, number) for topic, numbers in used.items() for number in numbers]
        _move(worker, name, config, dict.fromkeys([*committed, *places]))
    return {"message": _RESET}


def _group(config: Mapping[str, str], name: str) -> str:
    return config.get("consumer.override.group.id") or group_of(name)


def _stopped(worker: Worker, name: str) -> dict[str, str]:
    config = config_of(worker, name)
    known = worker.statuses.connectors.get(name)
    has_stopped = known is not None and known.state == statuses.STOPPED
    if worker.configs.target(name) != STOPPED or not has_stopped:
        raise Refused(
            400,
            "Connectors must be in the STOPPED state before their offsets can be modified. This can be done for the "
            f"specified connector by issuing a 'PUT' request to the '/connectors/{name}/stop' endpoint",
        )
    return config


def _source_row(row: Any) -> tuple[Mapping[str, Any], Mapping[str, Any] | None]:
    partition, offset = (row.get("partition"), row.get("offset")) if isinstance(row, Mapping) else (None, None)
    if not isinstance(partition, Mapping) or not isinstance(offset, Mapping | None):
        raise Refused(400, 'each of the offsets is {"partition": {...}, "offset": {...}}, or has null for its offset')
    return partition, offset


def sink_row(row: Any) -> tuple[TopicPartition, int | None]:
    partition, offset = _source_row(row)
    if "kafka_topic" not in partition or "kafka_partition" not in partition:
        raise Refused(400, _SINK_PARTITION)
    if offset is not None and "kafka_offset" not in offset:
        raise Refused(400, _SINK_OFFSET)
    topic = partition["kafka_topic"]
    if not isinstance(topic, str) or not topic:
        raise Refused(400, "kafka_topic is the name of a topic")
    place = TopicPartition(topic, _number(partition["kafka_partition"], _PARTITION_MAX))
    number = None if offset is None else _number(offset["kafka_offset"], _OFFSET_MAX)
    return place, number


def _number(value: Any, most: int) -> int:
    text = "" if isinstance(value, bool) else str(value)
    if not _NUMBER.fullmatch(text):
        raise Refused(400, "kafka_partition and kafka_offset are whole numbers")
    number = int(text)
    if not 0 <= number <= most:
        raise Refused(400, f"kafka_partition and kafka_offset are {'not below 0' if number < 0 else 'not that large'}")
    return number


def _check(
    worker: Worker, config: Mapping[str, str], rows: Sequence[tuple[Mapping[str, Any], Mapping[str, Any] | None]]
) -> None:
    """What the source could not go on from would fail it for ever."""
    given = resolved(effective(config, worker.settings.defaults), worker.settings.providers)
    source = find(config["connector.class"]).connector(given.config)
    assert isinstance(source, Source)
    try:
        for partition, offset in rows:
            wrong = None if offset is None else source.check_offset(partition, offset)
            if wrong is not None:
                raise Refused(400, f"{json.dumps({'partition': partition, 'offset': offset})}: {given.hidden(wrong)}.")
    finally:
        source.close()


def _write(worker: Worker, name: str, rows: Sequence[tuple[Mapping[str, Any], Mapping[str, Any] | None]]) -> None:
    topic = worker.offset_topic
    records = [worker.offsets.record(name, partition, offset) for partition, offset in rows]
    with (
        ClusterClient(worker.settings.client.address) as cluster,
        TransactionalProducer(cluster, f"{worker.settings.group}-{name}") as producer,
    ):
        producer.start()
        if records:
            with producer.transaction():
                producer.produce(batches(topic.name, topic.partitions, records))
    topic.read_to_end()


def _move(worker: Worker, name: str, config: Mapping[str, str], moved: Mapping[TopicPartition, int | None]) -> None:
    group = _group(config, name)
    given = resolved(effective(config, worker.settings.defaults), worker.settings.providers)
    sink = find(config["connector.class"]).connector(given.config)
    assert isinstance(sink, Sink)
    with ClusterClient(worker.settings.client.address) as cluster:
        known = cluster.refresh(sorted({place.topic for place in moved}))
        for place in moved:
            if place.partition not in known.get(place.topic, []):
                raise Refused(404, f"there is no partition {place}")
        try:
            sink.moved(moved)
        except ConnectorFailure as error:
            raise Refused(400, given.hidden(str(error))) from None
        commit_offsets(
            cluster, group, {place: Committed(offset) for place, offset in moved.items() if offset is not None}
        )
        delete_offsets(cluster, group, [place for place, offset in moved.items() if offset is None])
    # Whoever sets offsets means the topics that are there now.
    topics = {place.topic for place in moved} & worker.offsets.topic_ids(name).keys()
    if topics:
        worker.offset_writer.write([worker.offsets.topic_id_record(name, topic, None) for topic in sorted(topics)])
