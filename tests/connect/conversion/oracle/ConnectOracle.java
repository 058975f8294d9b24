import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Comparator;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.data.Field;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.header.ConnectHeaders;
import org.apache.kafka.connect.header.Header;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.storage.Converter;
import org.apache.kafka.connect.storage.HeaderConverter;
import org.apache.kafka.connect.storage.SimpleHeaderConverter;
import org.apache.kafka.connect.transforms.Transformation;
import org.apache.kafka.connect.transforms.predicates.Predicate;

/** One request for each line of JSON on stdin: Kafka Connect's own converters and transforms answer, as JSON. */
public class ConnectOracle {
    static final ObjectMapper JSON = new ObjectMapper();
    static final JsonNodeFactory NODES = JsonNodeFactory.instance;

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        out.println("ready");
        out.flush();
        String line;
        while ((line = in.readLine()) != null) {
            JsonNode answer;
            try {
                answer = answer(JSON.readTree(line));
            } catch (Throwable problem) {
                answer = NODES.objectNode().put("refused", String.valueOf(problem));
            }
            out.println(JSON.writeValueAsString(answer));
            out.flush();
        }
    }

    static JsonNode answer(JsonNode request) throws Exception {
        switch (request.get("op").asText()) {
            case "transform": return transform(request);
            case "predicate": return predicate(request);
            case "decode": return decode(request);
            case "encode": return encode(request);
            default: throw new IllegalArgumentException("unknown request");
        }
    }

    static Map<String, Object> settings(JsonNode request) {
        Map<String, Object> found = new HashMap<>();
        request.get("config").properties().forEach(each -> found.put(each.getKey(), each.getValue().asText()));
        return found;
    }

    static JsonConverter json() {
        JsonConverter converter = new JsonConverter();
        converter.configure(Map.of("schemas.enable", "true"), false);
        return converter;
    }

    static byte[] bytes(JsonNode node) {
        return node == null || node.isNull() ? null : Base64.getDecoder().decode(node.asText());
    }

    static SinkRecord record(JsonNode node, JsonConverter json) {
        SimpleHeaderConverter simple = new SimpleHeaderConverter();
        String topic = node.get("topic").asText();
        SchemaAndValue key = json.toConnectData(topic, bytes(node.get("key")));
        SchemaAndValue value = json.toConnectData(topic, bytes(node.get("value")));
        ConnectHeaders headers = new ConnectHeaders();
        for (JsonNode each : node.get("headers")) {
            String name = each.get(0).asText();
            headers.add(name, simple.toConnectHeader(topic, name, bytes(each.get(1))));
        }
        Long timestamp = node.get("timestamp").isNull() ? null : node.get("timestamp").asLong();
        return new SinkRecord(topic, node.get("partition").asInt(), key.schema(), key.value(), value.schema(),
            value.value(), node.get("offset").asLong(), timestamp,
            org.apache.kafka.common.record.TimestampType.CREATE_TIME, headers);
    }

    @SuppressWarnings("unchecked")
    static JsonNode transform(JsonNode request) throws Exception {
        JsonConverter json = json();
        try (Transformation<SinkRecord> transformation =
                 (Transformation<SinkRecord>) Class.forName(request.get("class").asText()).getDeclaredConstructor().newInstance()) {
            transformation.configure(settings(request));
            ArrayNode found = NODES.arrayNode();
            for (JsonNode each : request.get("records")) {
                try {
                    SinkRecord made = transformation.apply(record(each, json));
                    found.add(made == null ? NODES.objectNode().put("dropped", true) : described(made));
                } catch (Exception problem) {
                    found.add(NODES.objectNode().put("error", String.valueOf(problem)));
                }
            }
            return found;
        }
    }

    @SuppressWarnings("unchecked")
    static JsonNode predicate(JsonNode request) throws Exception {
        JsonConverter json = json();
        try (Predicate<SinkRecord> predicate =
                 (Predicate<SinkRecord>) Class.forName(request.get("class").asText()).getDeclaredConstructor().newInstance()) {
            predicate.configure(settings(request));
            ArrayNode found = NODES.arrayNode();
            for (JsonNode each : request.get("records"))
                found.add(predicate.test(record(each, json)));
            return found;
        }
    }

    static JsonNode decode(JsonNode request) throws Exception {
        Object made = Class.forName(request.get("class").asText()).getDeclaredConstructor().newInstance();
        boolean isHeader = request.get("header").asBoolean();
        if (isHeader) {
            Map<String, Object> settings = settings(request);
            settings.put("converter.type", "header");
            ((HeaderConverter) made).configure(settings);
        } else {
            ((Converter) made).configure(settings(request), false);
        }
        ArrayNode found = NODES.arrayNode();
        for (JsonNode each : request.get("data")) {
            try {
                SchemaAndValue read = isHeader ? ((HeaderConverter) made).toConnectHeader("t", "h", bytes(each))
                    : ((Converter) made).toConnectData("t", bytes(each));
                ObjectNode answer = NODES.objectNode();
                answer.set("schema", described(read == null ? null : read.schema()));
                answer.set("value", value(read == null ? null : read.value()));
                found.add(answer);
            } catch (Exception problem) {
                found.add(NODES.objectNode().put("error", String.valueOf(problem)));
            }
        }
        return found;
    }

    static JsonNode encode(JsonNode request) throws Exception {
        JsonConverter json = json();
        Object made = Class.forName(request.get("class").asText()).getDeclaredConstructor().newInstance();
        boolean isHeader = request.get("header").asBoolean();
        if (isHeader) {
            Map<String, Object> settings = settings(request);
            settings.put("converter.type", "header");
            ((HeaderConverter) made).configure(settings);
        } else {
            ((Converter) made).configure(settings(request), false);
        }
        ArrayNode found = NODES.arrayNode();
        for (JsonNode each : request.get("data")) {
            try {
                SchemaAndValue given = json.toConnectData("t", bytes(each));
                byte[] written = isHeader ? ((HeaderConverter) made).fromConnectHeader("t", "h", given.schema(), given.value())
                    : ((Converter) made).fromConnectData("t", given.schema(), given.value());
                ObjectNode answer = NODES.objectNode();
                answer.put("data", written == null ? null : Base64.getEncoder().encodeToString(written));
                found.add(answer);
            } catch (Exception problem) {
                found.add(NODES.objectNode().put("error", String.valueOf(problem)));
            }
        }
        return found;
    }

    static ObjectNode described(ConnectRecord<?> record) {
        ObjectNode found = NODES.objectNode();
        found.put("topic", record.topic());
        found.put("partition", record.kafkaPartition());
        found.put("timestamp", record.timestamp());
        found.set("key_schema", described(record.keySchema()));
        found.set("key", value(record.key()));
        found.set("value_schema", described(record.valueSchema()));
        found.set("value", value(record.value()));
        ArrayNode headers = NODES.arrayNode();
        for (Header header : record.headers()) {
            ArrayNode one = NODES.arrayNode();
            one.add(header.key());
            one.add(described(header.schema()));
            one.add(value(header.value()));
            headers.add(one);
        }
        found.set("headers", headers);
        return found;
    }

    static JsonNode described(Schema schema) {
        if (schema == null)
            return NODES.nullNode();
        ObjectNode found = NODES.objectNode();
        found.put("type", schema.type().name());
        found.put("optional", schema.isOptional());
        found.put("name", schema.name());
        found.put("version", schema.version());
        found.put("doc", schema.doc());
        ObjectNode parameters = NODES.objectNode();
        if (schema.parameters() != null)
            schema.parameters().forEach(parameters::put);
        found.set("parameters", parameters);
        found.set("default", value(schema.defaultValue()));
        if (schema.type() == Schema.Type.STRUCT) {
            ArrayNode fields = NODES.arrayNode();
            for (Field field : schema.fields()) {
                ArrayNode one = NODES.arrayNode();
                one.add(field.name());
                one.add(described(field.schema()));
                fields.add(one);
            }
            found.set("fields", fields);
        }
        if (schema.type() == Schema.Type.MAP)
            found.set("keys", described(schema.keySchema()));
        if (schema.type() == Schema.Type.MAP || schema.type() == Schema.Type.ARRAY)
            found.set("values", described(schema.valueSchema()));
        return found;
    }

    static JsonNode value(Object value) {
        ObjectNode found = NODES.objectNode();
        if (value == null)
            return NODES.nullNode();
        if (value instanceof Boolean)
            return NODES.booleanNode((Boolean) value);
        if (value instanceof Byte || value instanceof Short || value instanceof Integer || value instanceof Long)
            return found.put("n", String.valueOf(value));
        if (value instanceof java.util.Date)
            return found.put("n", String.valueOf(((java.util.Date) value).getTime()));
        if (value instanceof Float || value instanceof Double)
            return found.put("f", String.valueOf(((Number) value).doubleValue()));
        if (value instanceof BigDecimal)
            return found.put("d", ((BigDecimal) value).toPlainString());
        if (value instanceof String)
            return found.put("s", (String) value);
        if (value instanceof byte[])
            return found.put("b", Base64.getEncoder().encodeToString((byte[]) value));
        if (value instanceof ByteBuffer)
            return found.put("b", Base64.getEncoder().encodeToString(((ByteBuffer) value).array()));
        if (value instanceof List) {
            ArrayNode items = NODES.arrayNode();
            for (Object each : (List<?>) value)
                items.add(value(each));
            return found.set("l", items);
        }
        if (value instanceof Map) {
            List<ArrayNode> entries = new ArrayList<>();
            for (Iterator<? extends Map.Entry<?, ?>> it = ((Map<?, ?>) value).entrySet().iterator(); it.hasNext();) {
                Map.Entry<?, ?> entry = it.next();
                ArrayNode one = NODES.arrayNode();
                one.add(value(entry.getKey()));
                one.add(value(entry.getValue()));
                entries.add(one);
            }
            entries.sort(Comparator.comparing(Object::toString));
            ArrayNode sorted = NODES.arrayNode();
            sorted.addAll(entries);
            return found.set("m", sorted);
        }
        if (value instanceof Struct) {
            ObjectNode fields = NODES.objectNode();
            for (Field field : ((Struct) value).schema().fields())
                fields.set(field.name(), value(((Struct) value).getWithoutDefault(field.name())));
            return found.set("o", fields);
        }
        throw new IllegalStateException("a value of " + value.getClass());
    }
}
