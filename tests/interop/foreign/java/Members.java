import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.RetriableCommitFailedException;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RebalanceInProgressException;

/** Group members, each polling and committing in a thread of its own until it is told to leave. */
final class Members {
    private final Map<String, Member> byName = new HashMap<>();

    JsonNode join(ObjectNode request) {
        Member member = new Member(request);
        byName.put(request.get("member").asText(), member);
        member.start();
        return null;
    }

    JsonNode seen(ObjectNode request) {
        return byName.get(request.get("member").asText()).toJson();
    }

    JsonNode leave(ObjectNode request) throws Exception {
        Member member = byName.remove(request.get("member").asText());
        member.stopping = true;
        if (!member.stopped.await(30, TimeUnit.SECONDS)) {
            throw new IllegalStateException("the member did not stop");
        }
        return member.toJson();
    }

    private static final class Member extends Thread {
        private final ObjectNode request;
        private final List<ObjectNode> records = new ArrayList<>();
        private Collection<TopicPartition> assignment = List.of();
        private String error;
        volatile boolean stopping;
        final CountDownLatch stopped = new CountDownLatch(1);

        Member(ObjectNode request) {
            this.request = request;
            setDaemon(true);
        }

        @Override
        public void run() {
            Properties properties = Records.settings(request);
            properties.put("group.id", request.get("group").asText());
            properties.putIfAbsent("auto.offset.reset", "earliest");
            properties.put("enable.auto.commit", "false");
            try (KafkaConsumer<byte[], byte[]> consumer = Records.consumer(properties)) {
                subscribe(consumer);
                while (!stopping) {
                    var polled = consumer.poll(Duration.ofMillis(100));
                    synchronized (this) {
                        polled.forEach(record -> records.add(Records.toJson(record)));
                        assignment = List.copyOf(consumer.assignment());
                    }
                    if (!polled.isEmpty()) {
                        commit(consumer);
                    }
                }
            } catch (Throwable thrown) {
                synchronized (this) {
                    error = thrown.toString();
                }
            } finally {
                stopped.countDown();
            }
        }

        private static void commit(KafkaConsumer<byte[], byte[]> consumer) {
            try {
                consumer.commitSync();
            } catch (RebalanceInProgressException | RetriableCommitFailedException again) {
                System.err.println("the next commit will do: " + again);
            }
        }

        private void subscribe(KafkaConsumer<byte[], byte[]> consumer) {
            if (request.hasNonNull("pattern")) {
                String pattern = request.get("pattern").asText();
                if ("consumer".equals(request.path("settings").path("group.protocol").asText())) {
                    consumer.subscribe(new SubscriptionPattern(pattern));
                } else {
                    consumer.subscribe(Pattern.compile(pattern));
                }
                return;
            }
            List<String> topics = new ArrayList<>();
            request.get("topics").forEach(topic -> topics.add(topic.asText()));
            consumer.subscribe(topics);
        }

        synchronized ObjectNode toJson() {
            ObjectNode node = Agent.JSON.createObjectNode();
            ArrayNode owned = node.putArray("assignment");
            assignment.forEach(each -> owned.addArray().add(each.topic()).add(each.partition()));
            node.putArray("records").addAll(records);
            return node.put("error", error);
        }
    }
}
