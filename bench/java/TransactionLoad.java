import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * The Java client under transactions, run by bench/lines_transactions.py. Prints `COUNTED SECONDS TOTAL`: what was done
 * in so many seconds after the warm-up, and all that was done since the start.
 *
 *   commit BOOTSTRAP TOPIC PARTITIONS PRODUCERS RECORDS RECORD_BYTES WARM_UP_S SECONDS   transactions
 *   pipe BOOTSTRAP SOURCE TARGET GROUP RECORDS UNCOUNTED                                 records
 */
public final class TransactionLoad {
    public static void main(String[] arguments) throws Exception {
        if (arguments[0].equals("commit")) {
            commit(arguments);
        } else {
            pipe(arguments);
        }
    }

    private static KafkaProducer<byte[], byte[]> producer(String bootstrap, String transactionalId) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("transactional.id", transactionalId);
        return new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer());
    }

    /** Each producer begins, sends records from partition to partition, commits, and begins again. */
    private static void commit(String[] arguments) throws Exception {
        String bootstrap = arguments[1];
        String topic = arguments[2];
        int partitions = Integer.parseInt(arguments[3]);
        int records = Integer.parseInt(arguments[5]);
        byte[] value = new byte[Integer.parseInt(arguments[6])];
        List<KafkaProducer<byte[], byte[]>> producers = new ArrayList<>();
        for (int number = 0; number < Integer.parseInt(arguments[4]); number++) {
            producers.add(producer(bootstrap, topic + "-" + number));
            producers.get(number).initTransactions();
        }
        long from = System.nanoTime() + (long) (Double.parseDouble(arguments[7]) * 1e9);
        long until = from + (long) (Double.parseDouble(arguments[8]) * 1e9);
        AtomicLong counted = new AtomicLong();
        AtomicLong total = new AtomicLong();
        AtomicReference<Exception> failure = new AtomicReference<>();
        List<Thread> threads = new ArrayList<>();
        for (KafkaProducer<byte[], byte[]> each : producers) {
            Thread thread = new Thread(() -> {
                try {
                    for (long now = 0; now < until; now = System.nanoTime()) {
                        each.beginTransaction();
                        for (int record = 0; record < records; record++) {
                            each.send(new ProducerRecord<>(topic, record % partitions, null, value));
                        }
                        // Without it a commit fails now and then with INVALID_TXN_STATE, on either broker: a race in the
                        // client (docs/transactions.md). That it helps is a guess; it costs both brokers the same.
                        each.flush();
                        each.commitTransaction();
                        total.incrementAndGet();
                        long ended = System.nanoTime();
                        if (ended >= from && ended < until) {
                            counted.incrementAndGet();
                        }
                    }
                } catch (Exception error) {
                    failure.set(error);
                }
            });
            thread.start();
            threads.add(thread);
        }
        for (Thread thread : threads) {
            thread.join();
        }
        for (KafkaProducer<byte[], byte[]> each : producers) {
            each.close();
        }
        if (failure.get() != null) {
            throw new IllegalStateException(failure.get());
        }
        System.out.println(counted.get() + " " + (until - from) / 1e9 + " " + total.get());
    }

    /** What a poll brings goes to the same partitions of another topic, with its offsets, in a transaction each. */
    private static void pipe(String[] arguments) throws Exception {
        String target = arguments[3];
        long records = Long.parseLong(arguments[5]);
        long uncounted = Long.parseLong(arguments[6]);
        Properties reading = new Properties();
        reading.put("bootstrap.servers", arguments[1]);
        reading.put("group.id", arguments[4]);
        reading.put("auto.offset.reset", "earliest");
        reading.put("isolation.level", "read_committed");
        reading.put("enable.auto.commit", "false");
        try (KafkaConsumer<byte[], byte[]> consumer =
                        new KafkaConsumer<>(reading, new ByteArrayDeserializer(), new ByteArrayDeserializer());
                KafkaProducer<byte[], byte[]> producer = producer(arguments[1], arguments[4])) {
            producer.initTransactions();
            consumer.subscribe(List.of(arguments[2]));
            long moved = 0;
            long from = 0;
            long movedBefore = 0;
            while (moved < records) {
                ConsumerRecords<byte[], byte[]> some = consumer.poll(Duration.ofSeconds(1));
                if (some.isEmpty()) {
                    continue;
                }
                producer.beginTransaction();
                Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
                for (ConsumerRecord<byte[], byte[]> record : some) {
                    producer.send(new ProducerRecord<>(target, record.partition(), record.key(), record.value()));
                    offsets.put(new TopicPartition(record.topic(), record.partition()),
                            new OffsetAndMetadata(record.offset() + 1));
                }
                producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
                producer.flush();
                producer.commitTransaction();
                moved += some.count();
                if (from == 0 && moved >= uncounted) {
                    from = System.nanoTime();
                    movedBefore = moved;
                }
            }
            System.out.println((moved - movedBefore) + " " + (System.nanoTime() - from) / 1e9 + " " + moved);
        }
    }
}
