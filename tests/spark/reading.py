"""What a plain consumer of committed records finds in a topic."""

from __future__ import annotations

import confluent_kafka


def committed_records(servers: str, topic: str) -> list[tuple[bytes, bytes]]:
    """(key, value) of all records, in order within each partition."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    partitions = len(consumer.list_topics(topic, 20).topics[topic].partitions)
    assert partitions, f"the broker knows no partition of {topic}"
    consumer.assign([confluent_kafka.TopicPartition(topic, number, 0) for number in range(partitions)])
    found: list[tuple[bytes, bytes]] = []
    ended: set[int] = set()
    while len(ended) < partitions:
        for message in consumer.consume(10_000, 1.0):
            if not message.error():
                found.append((message.key(), message.value()))
            elif message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF:
                ended.add(message.partition())
            else:
                raise confluent_kafka.KafkaException(message.error())
    consumer.close()
    return found
