"""Administration by the Java client, kafkajs and franz-go: topics, configs, offsets, records, groups, cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.interop.foreign.agents import AgentError
from tests.interop.foreign.clients import AgentClient, Client, Sent
from tests.interop.foreign.topics import create_topic
from tests.interop.foreign.waiting import eventually
from tests.support.process import BrokerProcess

pytestmark = [pytest.mark.foreign, pytest.mark.xdist_group("foreign")]
Step = Callable[..., Any]


@pytest.fixture
def step(broker: BrokerProcess, java: AgentClient) -> Step:
    """`step("describe_topic", topic=...)`: that call of Java's admin client."""
    return lambda op, **arguments: java.agent.call(op, bootstrap=broker.bootstrap, **arguments)


# --- Java ------------------------------------------------------------------------------------------------------------


def test_java_creates_describes_grows_and_deletes_a_topic(step: Step, name: str) -> None:
    made = step("create_topic", topic=name, partitions=3, config={"retention.ms": "60000"})
    assert (made["partitions"], made["replication"]) == (3, 1)
    described = eventually(lambda: step("describe_topic", topic=name), lambda found: len(found["partitions"]) == 3)
    assert described["id"] == made["id"]
    assert all(
        one == {"partition": i, "leader": 1, "replicas": 1, "isr": 1} for i, one in enumerate(described["partitions"])
    )
    step("create_partitions", topic=name, count=5)
    eventually(lambda: step("describe_topic", topic=name), lambda found: len(found["partitions"]) == 5)
    step("delete_topic", topic=name)
    eventually(lambda: step("list_topics"), lambda names: name not in names)


def test_java_gets_the_errors_that_kafka_gives(step: Step, name: str) -> None:
    step("create_topic", topic=name, partitions=2)
    with pytest.raises(AgentError, match="TopicExistsException"):
        step("create_topic", topic=name, partitions=1)
    with pytest.raises(AgentError, match="InvalidTopicException"):
        step("create_topic", topic="no spaces allowed", partitions=1)
    with pytest.raises(AgentError, match="InvalidPartitionsException"):
        step("create_topic", topic=f"{name}-none", partitions=0)
    with pytest.raises(AgentError, match="InvalidConfigurationException"):
        step("create_topic", topic=f"{name}-bad", partitions=1, config={"no.such.setting": "1"})
    with pytest.raises(AgentError, match="InvalidConfigurationException"):
        step("create_topic", topic=f"{name}-bad", partitions=1, config={"retention.ms": "soon"})
    with pytest.raises(AgentError, match="InvalidPartitionsException"):
        step("create_partitions", topic=name, count=1)
    with pytest.raises(AgentError, match="UnknownTopicOrPartitionException"):
        step("describe_topic", topic=f"{name}-missing")
    with pytest.raises(AgentError, match="UnknownTopicOrPartitionException"):
        step("delete_topic", topic=f"{name}-missing")


def test_java_sees_where_each_setting_comes_from(step: Step, name: str) -> None:
    step("create_topic", topic=name, partitions=1, config={"retention.ms": "60000", "max.message.bytes": "5000"})
    config = step("describe_config", type="topic", name=name)
    assert config["retention.ms"]["value"] == "60000"
    assert config["retention.ms"]["source"] == "DYNAMIC_TOPIC_CONFIG"
    assert config["retention.ms"]["type"] == "LONG"
    assert config["max.message.bytes"]["synonyms"] == 2  # the topic's own, then `message.max.bytes` of the broker
    assert config["cleanup.policy"] == {
        "value": "delete",
        "source": "DEFAULT_CONFIG",
        "type": "LIST",
        "read_only": False,
        "synonyms": 1,
        "documented": True,
    }
    broker_config = step("describe_config", type="broker", name="1")
    assert broker_config["log.cleaner.backoff.ms"]["source"] == "STATIC_BROKER_CONFIG"
    assert broker_config["node.id"]["read_only"]


def test_java_alters_settings_one_by_one(step: Step, name: str) -> None:
    step("create_topic", topic=name, partitions=1, config={"retention.ms": "60000"})
    operations = [
        ["set", "max.message.bytes", "5000"],
        ["delete", "retention.ms"],
        ["append", "cleanup.policy", "compact"],
    ]
    step("alter_config", type="topic", name=name, operations=operations)

    def applied(config: dict[str, Any]) -> bool:
        return bool(config["max.message.bytes"]["value"] == "5000")

    config = eventually(lambda: step("describe_config", type="topic", name=name), applied)
    assert config["retention.ms"]["source"] == "DEFAULT_CONFIG"
    assert sorted(config["cleanup.policy"]["value"].split(",")) == ["compact", "delete"]
    with pytest.raises(AgentError, match="InvalidConfigurationException"):
        step("alter_config", type="topic", name=name, operations=[["set", "max.message.bytes", "-7"]])
    with pytest.raises(AgentError, match="InvalidConfigurationException"):
        step("alter_config", type="topic", name=name, operations=[["append", "retention.ms", "1"]])


def test_java_finds_offsets_by_place_and_time(
    step: Step, broker: BrokerProcess, clients: Callable[[str], Client], name: str
) -> None:
    step("create_topic", topic=name, partitions=1)
    start_ms = 1_700_000_000_000
    # The middle one is the youngest: it is what `max_timestamp` finds.
    times = [start_ms, start_ms + 5000, start_ms + 1000]
    for at in times:
        clients("confluent").produce(broker.bootstrap, name, [Sent(None, b"x", timestamp=at)])
    where = {"topic": name, "partition": 0}
    assert step("list_offset", at="earliest", **where)["offset"] == 0
    assert step("list_offset", at="latest", **where)["offset"] == 3
    assert step("list_offset", at="max_timestamp", **where) == {"offset": 1, "timestamp": start_ms + 5000}
    assert step("list_offset", at=str(start_ms + 1), **where) == {"offset": 1, "timestamp": start_ms + 5000}
    assert step("list_offset", at=str(start_ms + 6000), **where)["offset"] == -1
    assert step("list_offset", at="earliest_local", **where)["offset"] == 0


def test_java_deletes_records_and_a_consumer_starts_after_them(
    step: Step, broker: BrokerProcess, clients: Callable[[str], Client], java: AgentClient, name: str
) -> None:
    step("create_topic", topic=name, partitions=1)
    clients("confluent").produce(broker.bootstrap, name, [Sent(None, b"%d" % n) for n in range(10)])
    assert step("delete_records", topic=name, partition=0, before=4) == 4
    assert step("list_offset", topic=name, partition=0, at="earliest")["offset"] == 4
    assert [one.offset for one in java.consume(broker.bootstrap, name, 6)] == [4, 5, 6, 7, 8, 9]
    with pytest.raises(AgentError, match="OffsetOutOfRangeException"):
        step("delete_records", topic=name, partition=0, before=99)
    assert step("delete_records", topic=name, partition=0, before=-1) == 10


def test_java_manages_a_group(
    step: Step, broker: BrokerProcess, clients: Callable[[str], Client], java: AgentClient, name: str
) -> None:
    step("create_topic", topic=name, partitions=2)
    clients("confluent").produce(broker.bootstrap, name, [Sent(None, b"x", partition=n % 2) for n in range(10)])
    java.join(broker.bootstrap, name, name, [name], client_id="the-client")
    offsets = eventually(
        lambda: step("group_offsets", group=name), lambda found: found == {f"{name}-0": 5, f"{name}-1": 5}
    )
    assert offsets
    described = step("describe_group", group=name)
    assert described["state"] == "STABLE"
    assert described["type"] == "CLASSIC"
    assert described["members"] == [
        {"client": "the-client", "host": "/127.0.0.1", "instance": None, "partitions": 2},
    ]
    with pytest.raises(AgentError, match="GroupNotEmptyException"):
        step("delete_group", group=name)
    with pytest.raises(AgentError, match=r"UnknownMemberIdException|GroupNotEmpty"):
        step("alter_group_offset", group=name, topic=name, partition=0, offset=1)
    java.leave(name)
    assert eventually(lambda: step("describe_group", group=name), lambda found: found["state"] == "EMPTY")
    step("alter_group_offset", group=name, topic=name, partition=0, offset=2)
    assert step("group_offsets", group=name)[f"{name}-0"] == 2
    step("delete_group_offset", group=name, topic=name, partition=1)
    assert step("group_offsets", group=name) == {f"{name}-0": 2}
    assert name in step("list_groups")
    step("delete_group", group=name)
    assert name not in step("list_groups")


def test_java_describes_the_cluster_its_folders_and_producers(
    step: Step, broker: BrokerProcess, java: AgentClient, name: str
) -> None:
    cluster = step("describe_cluster")
    assert (cluster["nodes"], cluster["controller"]) == (1, 1)
    assert len(cluster["id"]) == 22
    step("create_topic", topic=name, partitions=1)
    java.produce(broker.bootstrap, name, [Sent(None, bytes(5000))])
    folders = step("describe_log_dirs", node=1)
    assert sum(sizes.get(f"{name}-0", 0) for sizes in folders.values()) > 5000
    # The Java producer is idempotent by default, so the partition knows it.
    assert step("describe_producers", topic=name, partition=0) == 1


# --- kafkajs ---------------------------------------------------------------------------------------------------------


def test_kafkajs_administers_a_topic(broker: BrokerProcess, clients: Callable[[str], Client], name: str) -> None:
    kafkajs = clients("kafkajs")
    assert isinstance(kafkajs, AgentClient)

    def admin(method: str, *arguments: object) -> Any:
        return kafkajs.agent.call("admin", bootstrap=broker.bootstrap, method=method, arguments=arguments)

    entries = [{"name": "retention.ms", "value": "60000"}]
    assert admin("createTopics", {"topics": [{"topic": name, "numPartitions": 2, "configEntries": entries}]})
    kafkajs.produce(broker.bootstrap, name, [Sent(None, b"x", partition=0)] * 5)
    offsets = {one["partition"]: (one["low"], one["high"]) for one in admin("fetchTopicOffsets", name)}
    assert offsets == {0: ("0", "5"), 1: ("0", "0")}
    admin("deleteTopicRecords", {"topic": name, "partitions": [{"partition": 0, "offset": "3"}]})
    assert {one["partition"]: one["low"] for one in admin("fetchTopicOffsets", name)} == {0: "3", 1: "0"}

    resource = {"type": 2, "name": name}
    asked = {"resources": [{**resource, "configNames": ["retention.ms"]}], "includeSynonyms": False}
    (described,) = admin("describeConfigs", asked)["resources"]
    assert [(one["configName"], one["configValue"]) for one in described["configEntries"]] == [
        ("retention.ms", "60000")
    ]
    changed = [{"name": "max.message.bytes", "value": "7000"}]
    admin("alterConfigs", {"resources": [{**resource, "configEntries": changed}], "validateOnly": False})
    # AlterConfigs replaces all settings: what is not named goes back to its default.
    (described,) = eventually(
        lambda: admin("describeConfigs", asked)["resources"],
        lambda found: found[0]["configEntries"][0]["configValue"] == "604800000",
    )
    admin("createPartitions", {"topicPartitions": [{"topic": name, "count": 4}]})
    eventually(
        lambda: admin("fetchTopicMetadata", {"topics": [name]})["topics"][0]["partitions"],
        lambda found: len(found) == 4,
    )
    assert len(admin("describeCluster")["brokers"]) == 1
    admin("deleteTopics", {"topics": [name]})
    eventually(lambda: admin("listTopics"), lambda names: name not in names)


def test_kafkajs_resets_and_deletes_a_group(broker: BrokerProcess, clients: Callable[[str], Client], name: str) -> None:
    kafkajs = clients("kafkajs")
    assert isinstance(kafkajs, AgentClient)

    def admin(method: str, *arguments: object) -> Any:
        return kafkajs.agent.call("admin", bootstrap=broker.bootstrap, method=method, arguments=arguments)

    create_topic(broker, name)
    kafkajs.produce(broker.bootstrap, name, [Sent(None, b"x")] * 3)
    kafkajs.join(broker.bootstrap, name, name, [name])
    eventually(lambda: kafkajs.seen(name).records, lambda seen: len(seen) == 3)
    asked = {"groupId": name, "topics": [name]}
    eventually(lambda: admin("fetchOffsets", asked)[0]["partitions"][0]["offset"], "3".__eq__)
    (group,) = admin("describeGroups", [name])["groups"]
    assert (group["state"], group["protocolType"], len(group["members"])) == ("Stable", "consumer", 1)
    kafkajs.leave(name)
    admin("setOffsets", {"groupId": name, "topic": name, "partitions": [{"partition": 0, "offset": "1"}]})
    assert admin("fetchOffsets", asked)[0]["partitions"][0]["offset"] == "1"
    assert name in [one["groupId"] for one in admin("listGroups")["groups"]]
    assert admin("deleteGroups", [name])[0]["errorCode"] == 0


# --- franz-go --------------------------------------------------------------------------------------------------------


def test_franz_go_administers_a_topic(broker: BrokerProcess, clients: Callable[[str], Client], name: str) -> None:
    franz = clients("franz-go")
    assert isinstance(franz, AgentClient)

    def admin(op: str, **arguments: Any) -> Any:
        return franz.agent.call(op, bootstrap=broker.bootstrap, topic=name, **arguments)

    assert admin("create_topic", partitions=2, config={"retention.ms": "60000"}) == {"partitions": 2}
    assert admin("describe_config")["retention.ms"] == "60000"
    franz.produce(broker.bootstrap, name, [Sent(None, b"x", partition=0)] * 5)
    assert admin("end_offsets") == {"0": 5, "1": 0}
    assert admin("delete_records", before=2) == 2
    assert admin("start_offsets") == {"0": 2, "1": 0}

    def lag() -> Any:
        try:
            return admin("lag", group=name)
        except AgentError as error:
            assert "GROUP_ID_NOT_FOUND" in str(error)
            return None

    assert lag() is None
    franz.join(broker.bootstrap, name, name, [name])
    eventually(lag, lambda found: found == {"state": "Stable", "lag": 0})
    franz.leave(name)
    eventually(lag, lambda found: found == {"state": "Empty", "lag": 0})
    admin("delete_topic")
