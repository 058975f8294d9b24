// Prints what Kafka's own classes say about its configuration, one tab-separated line per fact, for a test to compare with ours.
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigDef.ConfigKey;
import org.apache.kafka.coordinator.group.GroupConfig;
import org.apache.kafka.server.config.AbstractKafkaConfig;
import org.apache.kafka.server.config.DynamicBrokerConfig;
import org.apache.kafka.server.config.DynamicConfig;
import org.apache.kafka.server.config.ServerTopicConfigSynonyms;
import org.apache.kafka.server.metrics.ClientMetricsConfigs;
import org.apache.kafka.storage.internals.log.LogConfig;

public class KafkaConfigFacts {
    public static void main(String[] args) {
        keys("broker", AbstractKafkaConfig.CONFIG_DEF.configKeys());
        keys("dynamic-only", DynamicConfig.Broker.names().isEmpty() ? Map.of() : brokerOnlyDynamic());
        keys("topic", LogConfig.configDefCopy().configKeys());
        keys("group", GroupConfig.CONFIG_DEF.configKeys());
        keys("client-metrics", ClientMetricsConfigs.configDef().configKeys());
        ServerTopicConfigSynonyms.ALL_TOPIC_CONFIG_SYNONYMS.forEach((topic, synonyms) ->
            synonyms.forEach(s -> line("topic-synonym", topic, s.name())));
        GroupConfig.ALL_GROUP_CONFIG_SYNONYMS.forEach((group, synonym) ->
            synonym.ifPresent(name -> line("group-synonym", group, name)));
        DynamicBrokerConfig.dynamicConfigUpdateModes().forEach((name, mode) -> line("mode", name, mode));
        for (String name : AbstractKafkaConfig.CONFIG_DEF.names())
            for (String synonym : DynamicBrokerConfig.brokerConfigSynonyms(name, true))
                if (!synonym.equals(name)) line("broker-synonym", name, synonym);
    }

    private static Map<String, ConfigKey> brokerOnlyDynamic() {
        Map<String, ConfigKey> only = new TreeMap<>(DynamicConfig.Broker.configKeys());
        only.keySet().removeAll(AbstractKafkaConfig.CONFIG_DEF.names());
        return only;
    }

    private static void keys(String kind, Map<String, ConfigKey> keys) {
        new TreeMap<>(keys).forEach((name, key) -> line(kind, name, key.type.name(), defaultOf(key),
            key.validator == null ? "" : key.validator.toString(), key.importance.name(), key.internalConfig ? "internal" : "public"));
    }

    private static String defaultOf(ConfigKey key) {
        if (!key.hasDefault()) return "<required>";
        if (key.defaultValue == null) return "<null>";
        return ConfigDef.convertToString(key.defaultValue, key.type);
    }

    private static void line(String... cells) {
        System.out.println(String.join("\t", cells).replace("\n", " "));
    }
}
