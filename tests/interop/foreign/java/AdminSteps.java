import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.DescribeConfigsOptions;
import org.apache.kafka.clients.admin.LogDirDescription;
import org.apache.kafka.clients.admin.MemberDescription;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;

/** The Java admin client, one call a step. */
final class AdminSteps {
    static JsonNode perform(String op, ObjectNode request) throws Exception {
        try (Admin admin = Admin.create(Records.settings(request))) {
            switch (op) {
                case "create_topic":
                    return createTopic(admin, request);
                case "describe_topic":
                    return describeTopic(admin, topic(request));
                case "delete_topic":
                    admin.deleteTopics(List.of(topic(request))).all().get();
                    return null;
                case "list_topics":
                    return Agent.JSON.valueToTree(admin.listTopics().names().get());
                case "create_partitions":
                    admin.createPartitions(Map.of(topic(request), NewPartitions.increaseTo(number(request, "count"))))
                            .all().get();
                    return null;
                case "describe_config":
                    return describeConfig(admin, resource(request));
                case "alter_config":
                    return alterConfig(admin, request);
                case "list_offset":
                    return listOffset(admin, request);
                case "delete_records":
                    return delete(admin, request);
                case "describe_cluster":
                    return describeCluster(admin);
                case "describe_log_dirs":
                    return describeLogDirs(admin, number(request, "node"));
                case "describe_producers":
                    return Agent.JSON.valueToTree(admin.describeProducers(List.of(partition(request))).all().get()
                            .get(partition(request)).activeProducers().size());
                default:
                    return groups(op, admin, request);
            }
        }
    }

    private static JsonNode groups(String op, Admin admin, ObjectNode request) throws Exception {
        switch (op) {
            case "list_groups":
                ArrayNode names = Agent.JSON.createArrayNode();
                admin.listGroups().all().get().forEach(each -> names.add(each.groupId()));
                return names;
            case "describe_group":
                return describeGroup(admin, group(request));
            case "group_offsets":
                return groupOffsets(admin, group(request));
            case "alter_group_offset":
                admin.alterConsumerGroupOffsets(group(request),
                        Map.of(partition(request), new OffsetAndMetadata(request.get("offset").asLong(), "note")))
                        .all().get();
                return null;
            case "delete_group_offset":
                admin.deleteConsumerGroupOffsets(group(request), java.util.Set.of(partition(request))).all().get();
                return null;
            case "delete_group":
                admin.deleteConsumerGroups(List.of(group(request))).all().get();
                return null;
            case "remove_members":
                admin.removeMembersFromConsumerGroup(group(request),
                        new org.apache.kafka.clients.admin.RemoveMembersFromConsumerGroupOptions()).all().get();
                return null;
            default:
                throw new IllegalArgumentException("no such step: " + op);
        }
    }

    private static String topic(ObjectNode request) { return request.get("topic").asText(); }

    private static String group(ObjectNode request) { return request.get("group").asText(); }

    private static int number(ObjectNode request, String name) { return request.get(name).asInt(); }

    private static TopicPartition partition(ObjectNode request) {
        return new TopicPartition(topic(request), number(request, "partition"));
    }

    private static ConfigResource resource(ObjectNode request) {
        return new ConfigResource(ConfigResource.Type.valueOf(request.get("type").asText().toUpperCase()),
                request.get("name").asText());
    }

    private static JsonNode createTopic(Admin admin, ObjectNode request) throws Exception {
        Map<String, String> config = new HashMap<>();
        request.path("config").properties().forEach(each -> config.put(each.getKey(), each.getValue().asText()));
        Optional<Integer> partitions =
                request.hasNonNull("partitions") ? Optional.of(number(request, "partitions")) : Optional.empty();
        var result = admin.createTopics(List.of(new NewTopic(topic(request), partitions, Optional.empty()).configs(config)));
        result.all().get();
        return Agent.JSON.createObjectNode()
                .put("partitions", result.numPartitions(topic(request)).get())
                .put("replication", result.replicationFactor(topic(request)).get())
                .put("id", result.topicId(topic(request)).get().toString());
    }

    private static JsonNode describeTopic(Admin admin, String topic) throws Exception {
        var found = admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic);
        ObjectNode node = Agent.JSON.createObjectNode().put("id", found.topicId().toString());
        ArrayNode partitions = node.putArray("partitions");
        found.partitions().forEach(each -> partitions.addObject()
                .put("partition", each.partition()).put("leader", each.leader().id())
                .put("replicas", each.replicas().size()).put("isr", each.isr().size()));
        return node;
    }

    private static JsonNode describeConfig(Admin admin, ConfigResource resource) throws Exception {
        ObjectNode node = Agent.JSON.createObjectNode();
        var options = new DescribeConfigsOptions().includeSynonyms(true).includeDocumentation(true);
        for (ConfigEntry entry : admin.describeConfigs(List.of(resource), options).all().get().get(resource).entries()) {
            node.putObject(entry.name()).put("value", entry.value()).put("source", entry.source().name())
                    .put("type", entry.type().name()).put("read_only", entry.isReadOnly())
                    .put("synonyms", entry.synonyms().size())
                    .put("documented", entry.documentation() != null && !entry.documentation().isEmpty());
        }
        return node;
    }

    private static JsonNode alterConfig(Admin admin, ObjectNode request) throws Exception {
        List<AlterConfigOp> operations = new ArrayList<>();
        for (JsonNode each : request.get("operations")) {
            operations.add(new AlterConfigOp(new ConfigEntry(each.get(1).asText(), each.path(2).asText("")),
                    AlterConfigOp.OpType.valueOf(each.get(0).asText().toUpperCase())));
        }
        admin.incrementalAlterConfigs(Map.of(resource(request), operations)).all().get();
        return null;
    }

    private static JsonNode listOffset(Admin admin, ObjectNode request) throws Exception {
        OffsetSpec spec;
        switch (request.get("at").asText()) {
            case "earliest": spec = OffsetSpec.earliest(); break;
            case "latest": spec = OffsetSpec.latest(); break;
            case "max_timestamp": spec = OffsetSpec.maxTimestamp(); break;
            case "earliest_local": spec = OffsetSpec.earliestLocal(); break;
            default: spec = OffsetSpec.forTimestamp(request.get("at").asLong());
        }
        var found = admin.listOffsets(Map.of(partition(request), spec)).partitionResult(partition(request)).get();
        return Agent.JSON.createObjectNode().put("offset", found.offset()).put("timestamp", found.timestamp());
    }

    private static JsonNode delete(Admin admin, ObjectNode request) throws Exception {
        var before = RecordsToDelete.beforeOffset(request.get("before").asLong());
        var result = admin.deleteRecords(Map.of(partition(request), before));
        return Agent.JSON.valueToTree(result.lowWatermarks().get(partition(request)).get().lowWatermark());
    }

    private static JsonNode describeCluster(Admin admin) throws Exception {
        var cluster = admin.describeCluster();
        return Agent.JSON.createObjectNode().put("id", cluster.clusterId().get())
                .put("controller", cluster.controller().get().id()).put("nodes", cluster.nodes().get().size());
    }

    private static JsonNode describeLogDirs(Admin admin, int node) throws Exception {
        ObjectNode all = Agent.JSON.createObjectNode();
        for (Map.Entry<String, LogDirDescription> dir
                : admin.describeLogDirs(List.of(node)).allDescriptions().get().get(node).entrySet()) {
            ObjectNode sizes = all.putObject(dir.getKey());
            dir.getValue().replicaInfos().forEach((partition, info) -> sizes.put(partition.toString(), info.size()));
        }
        return all;
    }

    private static JsonNode describeGroup(Admin admin, String group) throws Exception {
        ConsumerGroupDescription found = admin.describeConsumerGroups(List.of(group)).all().get().get(group);
        ObjectNode node = Agent.JSON.createObjectNode().put("state", found.groupState().name())
                .put("type", found.type().name()).put("assignor", found.partitionAssignor());
        ArrayNode members = node.putArray("members");
        for (MemberDescription member : found.members()) {
            members.addObject().put("client", member.clientId()).put("host", member.host())
                    .put("instance", member.groupInstanceId().orElse(null))
                    .put("partitions", member.assignment().topicPartitions().size());
        }
        return node;
    }

    private static JsonNode groupOffsets(Admin admin, String group) throws Exception {
        ObjectNode node = Agent.JSON.createObjectNode();
        admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().forEach((partition, committed) -> {
            if (committed != null) {
                node.put(partition.toString(), committed.offset());
            }
        });
        return node;
    }
}
