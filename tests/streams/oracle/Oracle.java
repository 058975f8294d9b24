import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.function.Function;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.TestOutputTopic;
import org.apache.kafka.streams.kstream.*;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.ProcessorSupplier;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.WindowStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.TimestampedKeyValueStore;
import org.apache.kafka.streams.state.ValueAndTimestamp;
import org.apache.kafka.streams.state.VersionedKeyValueStore;
import org.apache.kafka.streams.state.VersionedRecord;
import org.apache.kafka.streams.test.TestRecord;

/** Runs one scenario for each line of JSON on stdin through Kafka Streams, and prints what came out, as JSON. */
public class Oracle {
    static final ObjectMapper JSON = new ObjectMapper();
    static final Serde<String> S = Serdes.String();

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready");
        String line;
        while ((line = in.readLine()) != null) {
            Object made;
            try {
                made = run(JSON.readTree(line));
            } catch (RuntimeException problem) {
                made = String.valueOf(problem) + " <- " + problem.getCause();
            }
            System.out.println(JSON.writeValueAsString(made));
            System.out.flush();
        }
    }

    static List<List<Object>> run(JsonNode scenario) {
        StreamsBuilder builder = new StreamsBuilder();
        build(builder, scenario.get("topology").asText(), scenario.get("settings"));
        Properties config = new Properties();
        config.put("application.id", "oracle");
        config.put("bootstrap.servers", "nowhere:1");
        config.put("default.key.serde", S.getClass().getName());
        config.put("default.value.serde", S.getClass().getName());
        config.put("statestore.cache.max.bytes", "0");
        config.put("dsl.store.suppliers.class",
            "org.apache.kafka.streams.state.BuiltInDslStoreSuppliers$InMemoryDslStoreSuppliers");
        config.put("state.dir", scenario.get("folder").asText());
        config.put("__emit.interval.ms.kstreams.outer.join.spurious.results.fix__", 0L);
        config.put("__emit.interval.ms.kstreams.windowed.aggregation__", 0L);
        List<List<Object>> made = new ArrayList<>();
        try (TopologyTestDriver driver = new TopologyTestDriver(builder.build(), config, Instant.ofEpochMilli(0))) {
            TestOutputTopic<String, String> out =
                driver.createOutputTopic("out", new StringDeserializer(), new StringDeserializer());
            for (JsonNode record : scenario.get("records")) {
                String topic = record.get(0).asText();
                if (topic.equals("clock")) {
                    driver.advanceWallClockTime(Duration.ofMillis(record.get(3).asLong()));
                } else {
                driver.createInputTopic(topic, new StringSerializer(), new StringSerializer())
                    .pipeInput(text(record.get(1)), text(record.get(2)), record.get(3).asLong());
                }
                for (TestRecord<String, String> each : out.readRecordsToList()) {
                    List<Object> row = new ArrayList<>();
                    row.add(each.key());
                    row.add(each.value());
                    row.add(each.timestamp());
                    made.add(row);
                }
            }
        }
        return made;
    }

    static String text(JsonNode node) {
        return node.isNull() ? null : node.asText();
    }

    static Duration ms(JsonNode settings, String name) {
        return Duration.ofMillis(settings.get(name).asLong());
    }

    static String shown(Windowed<String> key) {
        return key.key() + "@" + key.window().start() + "/" + key.window().end();
    }

    static void out(KTable<Windowed<String>, String> table) {
        table.toStream((key, value) -> shown(key)).to("out");
    }


    static Materialized<String, String, WindowStore<Bytes, byte[]>> windows(JsonNode settings) {
        Materialized<String, String, WindowStore<Bytes, byte[]>> kept = Materialized.with(S, S);
        return settings.has("close") ? kept.withRetention(Duration.ofDays(3000)) : kept;
    }

    static Materialized<String, String, SessionStore<Bytes, byte[]>> sessions(JsonNode settings) {
        Materialized<String, String, SessionStore<Bytes, byte[]>> kept = Materialized.with(S, S);
        return settings.has("close") ? kept.withRetention(Duration.ofDays(3000)) : kept;
    }

    static TimeWindows timeWindows(JsonNode settings) {
        TimeWindows windows = TimeWindows.ofSizeAndGrace(ms(settings, "size"), ms(settings, "grace"));
        return settings.has("advance") ? windows.advanceBy(ms(settings, "advance")) : windows;
    }

    static EmitStrategy strategy(JsonNode settings) {
        return settings.has("close") ? EmitStrategy.onWindowClose() : EmitStrategy.onWindowUpdate();
    }

    static String add(String key, String value, String aggregate) {
        return aggregate + "+" + value;
    }

    static String less(String key, String value, String aggregate) {
        return aggregate + "-" + value;
    }

    static void build(StreamsBuilder builder, String name, JsonNode settings) {
        switch (name) {
            case "count":
                builder.<String, String>stream("a").groupByKey().count().toStream().mapValues(v -> "" + v).to("out");
                break;
            case "reduce":
                builder.<String, String>stream("a").groupByKey().reduce((x, y) -> x + "+" + y).toStream().to("out");
                break;
            case "aggregate":
                builder.<String, String>stream("a").groupByKey()
                    .aggregate(() -> "", Oracle::add, Materialized.with(S, S)).toStream().to("out");
                break;
            case "rekeyed":
                builder.<String, String>stream("a").groupBy((k, v) -> v == null ? null : v.substring(0, 1))
                    .aggregate(() -> "", Oracle::add, Materialized.with(S, S)).toStream().to("out");
                break;
            case "time windows":
                out(builder.<String, String>stream("a").groupByKey().windowedBy(timeWindows(settings))
                    .emitStrategy(strategy(settings)).aggregate(() -> "", Oracle::add, windows(settings)));
                break;
            case "unlimited windows":
                out(builder.<String, String>stream("a").groupByKey()
                    .windowedBy(UnlimitedWindows.of().startOn(Instant.ofEpochMilli(settings.get("start").asLong())))
                    .aggregate(() -> "", Oracle::add, windows(settings)));
                break;
            case "sliding windows":
                out(builder.<String, String>stream("a").groupByKey()
                    .windowedBy(SlidingWindows.ofTimeDifferenceAndGrace(ms(settings, "size"), ms(settings, "grace")))
                    .emitStrategy(strategy(settings)).aggregate(() -> "", Oracle::add, windows(settings)));
                break;
            case "session windows":
                out(builder.<String, String>stream("a").groupByKey()
                    .windowedBy(SessionWindows.ofInactivityGapAndGrace(ms(settings, "gap"), ms(settings, "grace")))
                    .emitStrategy(strategy(settings))
                    .aggregate(() -> "", Oracle::add, (k, x, y) -> x + y, sessions(settings)));
                break;
            case "suppressed windows":
                out(builder.<String, String>stream("a").groupByKey().windowedBy(timeWindows(settings))
                    .aggregate(() -> "", Oracle::add, windows(settings))
                    .suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded())));
                break;
            case "suppressed sessions":
                out(builder.<String, String>stream("a").groupByKey()
                    .windowedBy(SessionWindows.ofInactivityGapAndGrace(ms(settings, "gap"), ms(settings, "grace")))
                    .aggregate(() -> "", Oracle::add, (k, x, y) -> x + y, sessions(settings))
                    .suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded())));
                break;
            case "suppressed for a time":
                builder.<String, String>table("a").suppress(Suppressed.untilTimeLimit(ms(settings, "wait"),
                    Suppressed.BufferConfig.maxRecords(settings.get("records").asLong()).emitEarlyWhenFull()))
                    .toStream().to("out");
                break;
            case "table":
                builder.<String, String>table("a").toStream().to("out");
                break;
            case "table filter":
                builder.<String, String>table("a").filter((k, v) -> v.compareTo("c") < 0).toStream().to("out");
                break;
            case "kept table filter":
                builder.<String, String>table("a", Materialized.as("kept"))
                    .filter((k, v) -> v.compareTo("c") < 0, Materialized.as("filtered")).toStream().to("out");
                break;
            case "table map":
                builder.<String, String>table("a").mapValues(v -> v + "!").filter((k, v) -> v.compareTo("c") < 0)
                    .toStream().to("out");
                break;
            case "grouped table":
                builder.<String, String>table("a").groupBy((k, v) -> KeyValue.pair(v.substring(0, 1), k))
                    .aggregate(() -> "", Oracle::add, Oracle::less, Materialized.with(S, S)).toStream().to("out");
                break;
            case "counted table":
                builder.<String, String>table("a").groupBy((k, v) -> KeyValue.pair(v.substring(0, 1), k))
                    .count().toStream().mapValues(v -> "" + v).to("out");
                break;
            case "reduced table":
                builder.<String, String>table("a").filter((k, v) -> v.compareTo("c") < 0)
                    .groupBy((k, v) -> KeyValue.pair(v.substring(0, 1), k))
                    .reduce((x, y) -> x + "+" + y, (x, y) -> x + "-" + y).toStream().to("out");
                break;
            case "to table":
                builder.<String, String>stream("a").toTable(Materialized.as("kept"))
                    .mapValues(v -> v + "?").toStream().to("out");
                break;
            case "cogroup":
                builder.<String, String>stream("a").groupByKey().cogroup(Oracle::add)
                    .cogroup(builder.<String, String>stream("b").groupByKey(), Oracle::less)
                    .aggregate(() -> "", Materialized.with(S, S)).toStream().to("out");
                break;
            case "windowed cogroup":
                out(builder.<String, String>stream("a").groupByKey().cogroup(Oracle::add)
                    .cogroup(builder.<String, String>stream("b").groupByKey(), Oracle::less)
                    .windowedBy(timeWindows(settings)).aggregate(() -> "", windows(settings)));
                break;
            case "stream join": {
                JoinWindows windows = JoinWindows
                    .ofTimeDifferenceAndGrace(ms(settings, "before"), ms(settings, "grace")).after(ms(settings, "after"));
                KStream<String, String> left = builder.stream("a"), right = builder.stream("b");
                ValueJoiner<String, String, String> joiner = (x, y) -> x + "|" + y;
                String kind = settings.get("kind").asText();
                (kind.equals("inner") ? left.join(right, joiner, windows)
                    : kind.equals("left") ? left.leftJoin(right, joiner, windows)
                    : left.outerJoin(right, joiner, windows)).to("out");
                break;
            }
            case "stream table join": {
                KStream<String, String> left = builder.stream("a");
                KTable<String, String> right = builder.table("b");
                ValueJoiner<String, String, String> joiner = (x, y) -> x + "|" + y;
                (settings.get("kind").asText().equals("inner") ? left.join(right, joiner) : left.leftJoin(right, joiner))
                    .to("out");
                break;
            }
            case "global table join": {
                KStream<String, String> left = builder.stream("a");
                GlobalKTable<String, String> right = builder.globalTable("b");
                KeyValueMapper<String, String, String> key = (k, v) -> v == null || v.startsWith("d") ? null : k;
                ValueJoiner<String, String, String> joiner = (x, y) -> x + "|" + y;
                (settings.get("kind").asText().equals("inner") ? left.join(right, key, joiner)
                    : left.leftJoin(right, key, joiner)).to("out");
                break;
            }
            case "table join": {
                KTable<String, String> left = builder.table("a"), right = builder.table("b");
                ValueJoiner<String, String, String> joiner = (x, y) -> x + "|" + y;
                String kind = settings.get("kind").asText();
                KTable<String, String> joined = kind.equals("inner") ? left.join(right, joiner)
                    : kind.equals("left") ? left.leftJoin(right, joiner) : left.outerJoin(right, joiner);
                if (settings.has("grouped")) {
                    joined.groupBy((k, v) -> KeyValue.pair(v.substring(0, 1), v))
                        .aggregate(() -> "", Oracle::add, Oracle::less, Materialized.with(S, S)).toStream().to("out");
                } else {
                    joined.toStream().to("out");
                }
                break;
            }
            case "foreign key join": {
                KTable<String, String> left = builder.table("a"), right = builder.table("b");
                ValueJoiner<String, String, String> joiner = (x, y) -> x + "|" + y;
                Function<String, String> key = v -> Map.of("a", "k", "b", "l", "c", "kk").get(v.substring(0, 1));
                KTable<String, String> joined = settings.get("kind").asText().equals("inner")
                    ? left.join(right, key, joiner) : left.leftJoin(right, key, joiner);
                if (settings.has("grouped")) {
                    joined.groupBy((k, v) -> KeyValue.pair(v.substring(0, 1), v))
                        .aggregate(() -> "", Oracle::add, Oracle::less, Materialized.with(S, S)).toStream().to("out");
                } else {
                    joined.toStream().to("out");
                }
                break;
            }
            case "join with a versioned table": {
                KStream<String, String> left = builder.stream("a");
                KTable<String, String> right = builder.table("b",
                    Materialized.as(Stores.persistentVersionedKeyValueStore("versions", ms(settings, "history"))));
                if (settings.has("filtered")) {
                    right = right.filter((k, v) -> v.compareTo("c") < 0);
                }
                ValueJoiner<String, String, String> joiner = (x, y) -> x + "|" + y;
                (settings.get("kind").asText().equals("inner") ? left.join(right, joiner) : left.leftJoin(right, joiner))
                    .to("out");
                break;
            }
            case "grouped versioned table":
                builder.<String, String>table("a",
                    Materialized.as(Stores.persistentVersionedKeyValueStore("versioned", ms(settings, "history"))))
                    .groupBy((k, v) -> KeyValue.pair(v.substring(0, 1), k))
                    .aggregate(() -> "", Oracle::add, Oracle::less, Materialized.with(S, S)).toStream().to("out");
                break;
            case "timer":
                builder.addStateStore(Stores.keyValueStoreBuilder(Stores.inMemoryKeyValueStore("seen"), S, S));
                builder.<String, String>stream("a").process(() -> new Collector(ms(settings, "every")), "seen").to("out");
                break;
            case "wall clock":
                builder.addStateStore(Stores.keyValueStoreBuilder(Stores.inMemoryKeyValueStore("counts"), S, S));
                builder.<String, String>stream("a").process(() -> new Silence(ms(settings, "every")), "counts").to("out");
                break;
            case "windowed reduce":
                out(builder.<String, String>stream("a").groupByKey().windowedBy(timeWindows(settings))
                    .reduce((x, y) -> x + "+" + y, windows(settings)));
                break;
            case "sliding reduce":
                out(builder.<String, String>stream("a").groupByKey().windowedBy(sliding(settings))
                    .reduce((x, y) -> x + "+" + y, windows(settings)));
                break;
            case "session reduce":
                out(builder.<String, String>stream("a").groupByKey()
                    .windowedBy(SessionWindows.ofInactivityGapAndGrace(ms(settings, "gap"), ms(settings, "grace")))
                    .reduce((x, y) -> x + "+" + y, sessions(settings)));
                break;
            case "windowed counts": {
                KGroupedStream<String, String> grouped = builder.<String, String>stream("a").groupByKey();
                String kind = settings.get("windows").asText();
                KTable<Windowed<String>, Long> counts = kind.equals("time")
                    ? grouped.windowedBy(timeWindows(settings)).count()
                    : kind.equals("sliding") ? grouped.windowedBy(sliding(settings)).count()
                    : grouped.windowedBy(SessionWindows.ofInactivityGapAndGrace(
                        ms(settings, "size"), ms(settings, "grace"))).count();
                counts.toStream((key, value) -> shown(key)).mapValues(v -> "" + v).to("out");
                break;
            }
            case "sliding cogroup":
                out(cogrouped(builder).windowedBy(sliding(settings)).aggregate(() -> "", windows(settings)));
                break;
            case "session cogroup":
                out(cogrouped(builder)
                    .windowedBy(SessionWindows.ofInactivityGapAndGrace(ms(settings, "gap"), ms(settings, "grace")))
                    .aggregate(() -> "", (k, x, y) -> x + y, sessions(settings)));
                break;
            case "regrouped windows":
                builder.<String, String>stream("a").groupByKey().windowedBy(timeWindows(settings))
                    .reduce((x, y) -> x + "+" + y, windows(settings))
                    .groupBy((window, v) -> KeyValue.pair(window.key(), v), Grouped.with(S, S))
                    .aggregate(() -> "", Oracle::add, Oracle::less, Materialized.with(S, S)).toStream().to("out");
                break;
            case "self join": {
                JoinWindows windows = JoinWindows
                    .ofTimeDifferenceAndGrace(ms(settings, "before"), ms(settings, "grace")).after(ms(settings, "after"));
                KStream<String, String> stream = builder.stream("a");
                ValueJoiner<String, String, String> joiner = (x, y) -> x + "|" + y;
                String kind = settings.get("kind").asText();
                (kind.equals("inner") ? stream.join(stream, joiner, windows)
                    : kind.equals("left") ? stream.leftJoin(stream, joiner, windows)
                    : stream.outerJoin(stream, joiner, windows)).to("out");
                break;
            }
            case "rekeyed join": {
                KStream<String, String> left = builder.<String, String>stream("a")
                    .selectKey((k, v) -> v == null ? null : foreignKey(v));
                KTable<String, String> right = builder.table("b");
                ValueJoiner<String, String, String> joiner = (x, y) -> x + "|" + y;
                (settings.get("kind").asText().equals("inner") ? left.join(right, joiner) : left.leftJoin(right, joiner))
                    .to("out");
                break;
            }
            case "rekeyed stream join": {
                JoinWindows windows = JoinWindows.ofTimeDifferenceAndGrace(ms(settings, "before"), ms(settings, "grace"));
                KeyValueMapper<String, String, String> key = (k, v) -> v == null ? null : foreignKey(v);
                KStream<String, String> left = builder.<String, String>stream("a").selectKey(key);
                KStream<String, String> right = builder.<String, String>stream("b").selectKey(key);
                ValueJoiner<String, String, String> joiner = (x, y) -> x + "|" + y;
                String kind = settings.get("kind").asText();
                (kind.equals("inner") ? left.join(right, joiner, windows)
                    : kind.equals("left") ? left.leftJoin(right, joiner, windows)
                    : left.outerJoin(right, joiner, windows)).to("out");
                break;
            }
            case "three tables": {
                KTable<String, String> first = builder.table("a"), second = builder.table("b"), third = builder.table("c");
                joinedTables(settings.get("then").asText(),
                    joinedTables(settings.get("kind").asText(), first, second), third).toStream().to("out");
                break;
            }
            case "stream with joined tables": {
                KTable<String, String> left = builder.table("a"), right = builder.table("b");
                right = right.filter((k, v) -> v.compareTo("c") < 0);
                builder.<String, String>stream("c")
                    .leftJoin(joinedTables(settings.get("kind").asText(), left, right), (x, y) -> x + "|" + y).to("out");
                break;
            }
            case "versioned table join":
                joinedTables(settings.get("kind").asText(), versioned(builder, settings, "a"),
                    versioned(builder, settings, "b")).toStream().to("out");
                break;
            case "versioned foreign key": {
                KTable<String, String> left = versioned(builder, settings, "a"), right = versioned(builder, settings, "b");
                ValueJoiner<String, String, String> joiner = (x, y) -> x + "|" + y;
                Function<String, String> key = Oracle::foreignKey;
                (settings.get("kind").asText().equals("inner") ? left.join(right, key, joiner)
                    : left.leftJoin(right, key, joiner)).toStream().to("out");
                break;
            }
            case "filtered group":
                builder.<String, String>table("a").filterNot((k, v) -> v.compareTo("c") < 0).mapValues(v -> v + "!")
                    .groupBy((k, v) -> KeyValue.pair(v.substring(0, 1), k))
                    .aggregate(() -> "", Oracle::add, Oracle::less, Materialized.with(S, S)).toStream().to("out");
                break;
            case "merged":
                builder.<String, String>stream("a")
                    .merge(builder.<String, String>stream("b").repartition(Repartitioned.as("again")))
                    .groupByKey().aggregate(() -> "", Oracle::add, Materialized.with(S, S)).toStream().to("out");
                break;
            case "suppressed without bounds":
                builder.<String, String>stream("a").groupByKey().reduce((x, y) -> x + "+" + y)
                    .suppress(Suppressed.untilTimeLimit(ms(settings, "wait"), Suppressed.BufferConfig.unbounded()))
                    .toStream().to("out");
                break;
            case "kept":
                kept(builder, settings.get("store").asText());
                break;
            default:
                throw new IllegalArgumentException(name);
        }
    }

    static SlidingWindows sliding(JsonNode settings) {
        return SlidingWindows.ofTimeDifferenceAndGrace(ms(settings, "size"), ms(settings, "grace"));
    }

    static CogroupedKStream<String, String> cogrouped(StreamsBuilder builder) {
        return builder.<String, String>stream("a").groupByKey().<String>cogroup(Oracle::add)
            .cogroup(builder.<String, String>stream("b").groupByKey(), Oracle::less);
    }

    static String foreignKey(String value) {
        return Map.of("a", "k", "b", "l", "c", "kk").get(value.substring(0, 1));
    }

    static KTable<String, String> versioned(StreamsBuilder builder, JsonNode settings, String topic) {
        return builder.table(topic,
            Materialized.as(Stores.persistentVersionedKeyValueStore("v-" + topic, ms(settings, "history"))));
    }

    static KTable<String, String> joinedTables(String kind, KTable<String, String> left, KTable<String, String> right) {
        ValueJoiner<String, String, String> joiner = (x, y) -> x + "|" + y;
        return kind.equals("inner") ? left.join(right, joiner)
            : kind.equals("left") ? left.leftJoin(right, joiner) : left.outerJoin(right, joiner);
    }

    /** Puts each record into a store of a kind, and tells what the store then has of its key. */
    static void kept(StreamsBuilder builder, String kind) {
        Duration retention = Duration.ofMillis(60);
        ProcessorSupplier<String, String, String, String> keeper;
        switch (kind) {
            case "key value":
                builder.addStateStore(Stores.keyValueStoreBuilder(Stores.inMemoryKeyValueStore("kept"), S, S));
                keeper = () -> new Keeper<KeyValueStore<String, String>>((store, k, v, at) -> {
                    String before = at % 2 == 1 ? store.putIfAbsent(k, v) : store.get(k);
                    if (at % 2 == 0) {
                        store.put(k, v);
                    }
                    return before + ";" + listed(store.range("k", "kk"), e -> e.key + "=" + e.value)
                        + ";" + listed(store.reverseAll(), e -> e.key + "=" + e.value);
                });
                break;
            case "timestamped":
                builder.addStateStore(
                    Stores.timestampedKeyValueStoreBuilder(Stores.inMemoryKeyValueStore("kept"), S, S));
                keeper = () -> new Keeper<TimestampedKeyValueStore<String, String>>((store, k, v, at) -> {
                    ValueAndTimestamp<String> before = store.get(k);
                    store.put(k, ValueAndTimestamp.make(v, at));
                    return (before == null ? "null" : before.value() + "@" + before.timestamp()) + ";"
                        + listed(store.all(), e -> e.key + "=" + e.value.value() + "@" + e.value.timestamp());
                });
                break;
            case "window":
                builder.addStateStore(Stores.windowStoreBuilder(
                    Stores.inMemoryWindowStore("kept", retention, Duration.ofMillis(10), false), S, S));
                keeper = () -> new Keeper<WindowStore<String, String>>((store, k, v, at) -> {
                    store.put(k, v, at);
                    String own = listed(store.fetch(k, Instant.ofEpochMilli(Math.max(0, at - 20)),
                        Instant.ofEpochMilli(at + 20)), e -> e.key + "=" + e.value);
                    List<String> every = new ArrayList<>();
                    store.all().forEachRemaining(e ->
                        every.add(e.key.key() + "@" + e.key.window().start() + "=" + e.value));
                    java.util.Collections.sort(every);
                    return store.fetch(k, at) + ";" + own + ";" + String.join(",", every);
                });
                break;
            case "session":
                builder.addStateStore(
                    Stores.sessionStoreBuilder(Stores.inMemorySessionStore("kept", retention), S, S));
                keeper = () -> new Keeper<SessionStore<String, String>>((store, k, v, at) -> {
                    Windowed<String> session = new Windowed<>(k,
                        new org.apache.kafka.streams.kstream.internals.SessionWindow(Math.max(0, at - 5), at));
                    store.put(session, v);
                    Function<KeyValue<Windowed<String>, String>, String> show =
                        e -> e.key.window().start() + "/" + e.key.window().end() + "=" + e.value;
                    return listed(store.findSessions(k, at - 9, at + 9), show) + ";" + listed(store.fetch(k), show)
                        + ";" + store.fetchSession(k, Math.max(0, at - 5), at);
                });
                break;
            default:
                builder.addStateStore(Stores.versionedKeyValueStoreBuilder(
                    Stores.persistentVersionedKeyValueStore("kept", retention), S, S));
                keeper = () -> new Keeper<VersionedKeyValueStore<String, String>>((store, k, v, at) -> {
                    if (at % 3 == 0) {
                        return shown(store.delete(k, at)) + ";" + shown(store.get(k));
                    }
                    store.put(k, v, at);
                    return shown(store.get(k, at)) + ";" + shown(store.get(k, Math.max(0, at - 10))) + ";"
                        + shown(store.get(k, at + 10)) + ";" + shown(store.get(k));
                });
        }
        builder.<String, String>stream("a").process(keeper, "kept").to("out");
    }

    static String shown(VersionedRecord<String> found) {
        return found == null ? "null" : found.value() + "@" + found.timestamp();
    }

    static <K, V> String listed(KeyValueIterator<K, V> entries, Function<KeyValue<K, V>, String> show) {
        StringBuilder found = new StringBuilder();
        try (entries) {
            entries.forEachRemaining(entry -> found.append(show.apply(entry)).append(","));
        }
        return found.toString();
    }

    interface PutAndLook<T> {
        String apply(T store, String key, String value, long at);
    }

    static class Keeper<T extends StateStore> implements Processor<String, String, String, String> {
        private final PutAndLook<T> puts;
        private ProcessorContext<String, String> context;
        private T store;

        Keeper(PutAndLook<T> puts) {
            this.puts = puts;
        }

        @Override
        public void init(ProcessorContext<String, String> context) {
            this.context = context;
            store = context.getStateStore("kept");
        }

        @Override
        public void process(Record<String, String> record) {
            if (record.key() != null) {
                context.forward(record.withValue(puts.apply(store, record.key(), record.value(), record.timestamp())));
            }
        }
    }

    /** Tells by the wall clock how many records it has seen since it last did. */
    static class Silence implements Processor<String, String, String, String> {
        private final Duration every;
        private KeyValueStore<String, String> counts;

        Silence(Duration every) {
            this.every = every;
        }

        @Override
        public void init(ProcessorContext<String, String> context) {
            counts = context.getStateStore("counts");
            context.schedule(every, PunctuationType.WALL_CLOCK_TIME, now -> {
                String count = counts.get("all");
                context.forward(new Record<>("all", count == null ? "0" : count, now));
                counts.delete("all");
            });
        }

        @Override
        public void process(Record<String, String> record) {
            String count = counts.get("all");
            counts.put("all", "" + (count == null ? 1 : Integer.parseInt(count) + 1));
        }
    }

    /** Collects values by key and sends all of them whenever stream time has moved by an interval. */
    static class Collector implements Processor<String, String, String, String> {
        private final Duration every;
        private KeyValueStore<String, String> seen;

        Collector(Duration every) {
            this.every = every;
        }

        @Override
        public void init(ProcessorContext<String, String> context) {
            seen = context.getStateStore("seen");
            context.schedule(every, PunctuationType.STREAM_TIME, now -> {
                List<String> keys = new ArrayList<>();
                try (var entries = seen.all()) {
                    while (entries.hasNext()) {
                        var entry = entries.next();
                        context.forward(new Record<>(entry.key, entry.value, now));
                        keys.add(entry.key);
                    }
                }
                keys.forEach(seen::delete);
            });
        }

        @Override
        public void process(Record<String, String> record) {
            if (record.key() != null && record.value() != null) {
                String before = seen.get(record.key());
                seen.put(record.key(), (before == null ? "" : before) + record.value());
            }
        }
    }
}
