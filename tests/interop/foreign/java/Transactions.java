import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Transactional producers that stay open between steps, and a whole pipeline as one step. */
final class Transactions {
    private final Map<String, KafkaProducer<byte[], byte[]>> byName = new HashMap<>();

    JsonNode perform(String op, ObjectNode request) throws Exception {
        String name = request.path("producer").asText();
        switch (op) {
            case "txn_open":
                KafkaProducer<byte[], byte[]> opened = producer(request);
                byName.put(name, opened);
                opened.initTransactions();
                return null;
            case "txn_begin":
                byName.get(name).beginTransaction();
                return null;
            case "txn_send":
                byName.get(name).send(new ProducerRecord<>(request.get("topic").asText(),
                        request.get("partition").asInt(), null, Records.bytes(request.get("value")))).get();
                return null;
            case "txn_offsets":
                byName.get(name).sendOffsetsToTransaction(
                        Map.of(new TopicPartition(request.get("topic").asText(), request.get("partition").asInt()),
                                new OffsetAndMetadata(request.get("offset").asLong())),
                        new ConsumerGroupMetadata(request.get("group").asText()));
                return null;
            case "txn_commit":
                byName.get(name).commitTransaction();
                return null;
            case "txn_abort":
                byName.get(name).abortTransaction();
                return null;
            case "txn_close":
                byName.remove(name).close(Duration.ZERO);
                return null;
            case "txn_pipe":
                return Agent.JSON.valueToTree(pipe(request));
            default:
                throw new IllegalArgumentException("no such step: " + op);
        }
    }

    private static KafkaProducer<byte[], byte[]> producer(ObjectNode request) {
        Properties properties = Records.settings(request);
        properties.put("transactional.id", request.get("transactional_id").asText());
        properties.put("transaction.timeout.ms", request.path("timeout_ms").asInt(60000));
        properties.put("max.block.ms", "30000");
        return new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer());
    }

    /**
     * Moves `count` records from one topic to another, exactly once, or all that come up to one whose value is `last`.
     * Every fifth transaction is aborted and repeated, and so is one in whose middle the group was rebalanced.
     */
    private static int pipe(ObjectNode request) throws Exception {
        Properties reading = Records.settings(request);
        reading.put("group.id", request.get("group").asText());
        reading.put("auto.offset.reset", "earliest");
        reading.put("isolation.level", "read_committed");
        reading.put("enable.auto.commit", "false");
        reading.put("max.poll.records", "10");
        byte[] last = request.path("last").asText().getBytes(StandardCharsets.UTF_8);
        boolean isLast = false;
        int moved = 0;
        try (KafkaConsumer<byte[], byte[]> consumer =
                        new KafkaConsumer<>(reading, new ByteArrayDeserializer(), new ByteArrayDeserializer());
                KafkaProducer<byte[], byte[]> producer = producer(request)) {
            producer.initTransactions();
            consumer.subscribe(List.of(request.get("source").asText()));
            for (int number = 1; moved < request.get("count").asInt() && !isLast; ) {
                ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(200));
                if (records.isEmpty()) {
                    continue;
                }
                producer.beginTransaction();
                Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
                for (ConsumerRecord<byte[], byte[]> record : records) {
                    producer.send(new ProducerRecord<>(request.get("target").asText(), record.partition(), null,
                            record.value()));
                    offsets.put(new TopicPartition(record.topic(), record.partition()),
                            new OffsetAndMetadata(record.offset() + 1));
                }
                boolean abort = number++ % 5 == 0;
                try {
                    producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
                    if (!abort) {
                        producer.commitTransaction();
                        moved += records.count();
                        for (ConsumerRecord<byte[], byte[]> record : records) {
                            isLast = isLast || Arrays.equals(record.value(), last);
                        }
                    }
                } catch (CommitFailedException stale) {
                    abort = true;
                }
                if (abort) {
                    producer.abortTransaction();
                    rewind(consumer);
                }
            }
        }
        return moved;
    }

    private static void rewind(KafkaConsumer<byte[], byte[]> consumer) {
        Map<TopicPartition, OffsetAndMetadata> committed = consumer.committed(consumer.assignment());
        for (TopicPartition partition : consumer.assignment()) {
            OffsetAndMetadata found = committed.get(partition);
            if (found == null) {
                consumer.seekToBeginning(List.of(partition));
            } else {
                consumer.seek(partition, found.offset());
            }
        }
    }
}
