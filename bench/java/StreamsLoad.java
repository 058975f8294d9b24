import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.time.Duration;
import java.util.Arrays;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.TimeWindows;

/**
 * The programs of bench/streams_programs.py in Kafka Streams, run by bench/streams_engines.py: exactly once, two threads,
 * else the settings that it comes with. Says `running` when it is, and runs until its standard input ends.
 *
 *   PROGRAM BOOTSTRAP APPLICATION_ID SOURCE TARGET STATE_FOLDER [CACHE_BYTES]
 */
public final class StreamsLoad {
    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", arguments[1]);
        properties.put("application.id", arguments[2]);
        properties.put("state.dir", arguments[5]);
        properties.put("processing.guarantee", "exactly_once_v2");
        properties.put("num.stream.threads", "2");
        properties.put("auto.offset.reset", "earliest");
        properties.put("default.key.serde", Serdes.StringSerde.class.getName());
        properties.put("default.value.serde", Serdes.StringSerde.class.getName());
        if (arguments.length > 6) {
            properties.put("statestore.cache.max.bytes", arguments[6]);
        }
        StreamsBuilder builder = new StreamsBuilder();
        build(builder.stream(arguments[3]), arguments[0]).to(arguments[4]);
        KafkaStreams streams = new KafkaStreams(builder.build(), properties);
        streams.setStateListener((now, before) -> {
            if (now == KafkaStreams.State.RUNNING) {
                System.out.println("running");
            }
        });
        streams.start();
        while (System.in.read() >= 0) {
            continue;
        }
        streams.close(Duration.ofSeconds(20));
        System.exit(0);
    }

    private static final ObjectMapper JSON = new ObjectMapper();

    private static JsonNode row(String text) {
        try {
            return JSON.readTree(text);
        } catch (java.io.IOException problem) {
            throw new java.io.UncheckedIOException(problem);
        }
    }

    private static KStream<String, String> build(KStream<String, String> source, String program) {
        switch (program) {
            case "words":
                return source.flatMapValues(line -> Arrays.asList(line.split(" ")))
                        .groupBy((key, word) -> word, Grouped.with(Serdes.String(), Serdes.String()))
                        .count()
                        .toStream()
                        .mapValues(count -> Long.toString(count));
            case "windows":
                return source.groupByKey()
                        .windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofSeconds(10), Duration.ofSeconds(10)))
                        .count()
                        .toStream()
                        .map((window, count) -> org.apache.kafka.streams.KeyValue.pair(
                                window.key(), window.window().start() + " " + count));
            case "counts":
                return source.groupByKey().count().toStream().mapValues(count -> Long.toString(count));
            case "native":
                return source.mapValues(StreamsLoad::row)
                        .filter((key, row) -> row.get("amount").asLong() > 10 && !row.get("item").isNull())
                        .mapValues(row -> row.toString())
                        .groupByKey()
                        .count()
                        .toStream()
                        .mapValues(count -> "{\"n\":" + count + "}");
            case "latest":
                return source.groupByKey().reduce((before, after) -> after).toStream();
            default:
                throw new IllegalArgumentException("no program is called " + program);
        }
    }
}
