import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Producing and plain consuming; bytes travel as base64, a missing key or value as null. */
final class Records {
    static Properties settings(ObjectNode request) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", request.get("bootstrap").asText());
        if (request.has("settings")) {
            request.get("settings").properties().forEach(e -> properties.put(e.getKey(), e.getValue().asText()));
        }
        if (properties.containsKey("sasl.oauthbearer.token.endpoint.url")) {
            // Kafka's clients read tokens from nowhere else.
            System.setProperty(
                    "org.apache.kafka.sasl.oauthbearer.allowed.urls",
                    properties.getProperty("sasl.oauthbearer.token.endpoint.url"));
        }
        return properties;
    }

    static JsonNode produce(ObjectNode request) throws Exception {
        Properties properties = settings(request);
        properties.putIfAbsent("compression.type", request.path("codec").asText("none"));
        ArrayNode sent = Agent.JSON.createArrayNode();
        try (KafkaProducer<byte[], byte[]> producer =
                new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer())) {
            List<Future<RecordMetadata>> promises = new ArrayList<>();
            for (JsonNode one : request.get("records")) {
                promises.add(producer.send(fromJson(request.get("topic").asText(), one)));
            }
            producer.flush();
            for (Future<RecordMetadata> promise : promises) {
                sent.addArray().add(promise.get().partition()).add(promise.get().offset());
            }
        }
        return sent;
    }

    private static ProducerRecord<byte[], byte[]> fromJson(String topic, JsonNode one) {
        Integer partition = one.hasNonNull("partition") ? one.get("partition").asInt() : null;
        Long timestamp = one.hasNonNull("timestamp") ? one.get("timestamp").asLong() : null;
        ProducerRecord<byte[], byte[]> record =
                new ProducerRecord<>(topic, partition, timestamp, bytes(one.get("key")), bytes(one.get("value")));
        for (JsonNode header : one.path("headers")) {
            record.headers().add(header.get(0).asText(), bytes(header.get(1)));
        }
        return record;
    }

    /** All partitions of a topic without a group, from the beginning or from a time, until so many records came. */
    static JsonNode consume(ObjectNode request) {
        Properties properties = settings(request);
        ArrayNode seen = Agent.JSON.createArrayNode();
        long deadline = System.currentTimeMillis() + request.path("timeout_ms").asLong(20_000);
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(properties)) {
            List<TopicPartition> partitions = new ArrayList<>();
            consumer.partitionsFor(request.get("topic").asText())
                    .forEach(info -> partitions.add(new TopicPartition(info.topic(), info.partition())));
            consumer.assign(partitions);
            if (request.hasNonNull("from_ms")) {
                seekToTime(consumer, partitions, request.get("from_ms").asLong());
            } else {
                consumer.seekToBeginning(partitions);
            }
            while (seen.size() < request.get("count").asInt() && System.currentTimeMillis() < deadline) {
                consumer.poll(Duration.ofMillis(200)).forEach(record -> seen.add(toJson(record)));
            }
        }
        return seen;
    }

    private static void seekToTime(KafkaConsumer<byte[], byte[]> consumer, List<TopicPartition> partitions, long ms) {
        Map<TopicPartition, Long> wanted = new HashMap<>();
        partitions.forEach(partition -> wanted.put(partition, ms));
        Map<TopicPartition, OffsetAndTimestamp> found = consumer.offsetsForTimes(wanted);
        for (TopicPartition partition : partitions) {
            if (found.get(partition) == null) {
                consumer.seekToEnd(List.of(partition));
            } else {
                consumer.seek(partition, found.get(partition).offset());
            }
        }
    }

    static KafkaConsumer<byte[], byte[]> consumer(Properties properties) {
        return new KafkaConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    static ObjectNode toJson(ConsumerRecord<byte[], byte[]> record) {
        ObjectNode one = Agent.JSON.createObjectNode();
        one.put("topic", record.topic()).put("partition", record.partition()).put("offset", record.offset());
        one.put("timestamp", record.timestamp()).put("key", text(record.key())).put("value", text(record.value()));
        ArrayNode headers = one.putArray("headers");
        for (Header header : record.headers()) {
            headers.addArray().add(header.key()).add(text(header.value()));
        }
        return one;
    }

    static byte[] bytes(JsonNode node) {
        return node == null || node.isNull() ? null : Base64.getDecoder().decode(node.asText());
    }

    private static String text(byte[] bytes) {
        return bytes == null ? null : new String(Base64.getEncoder().encode(bytes), StandardCharsets.US_ASCII);
    }
}
