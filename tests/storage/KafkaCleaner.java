// Runs Apache Kafka's own cleaner over partition folders, for a comparison with ours.
// Arguments: segment bytes, delete.retention.ms, then for each round: folder, time of the round in ms.

import java.io.File;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.*;
import org.apache.kafka.storage.internals.utils.Throttler;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

public class KafkaCleaner {
    public static void main(String[] arguments) throws Exception {
        Map<String, String> settings = new HashMap<>();
        settings.put("internal.segment.bytes", arguments[0]);
        settings.put("delete.retention.ms", arguments[1]);
        settings.put("cleanup.policy", "compact");
        LogConfig config = new LogConfig(settings);
        KafkaScheduler scheduler = new KafkaScheduler(1);
        scheduler.startup();
        int day = 86_400_000;
        for (int at = 2; at < arguments.length; at += 2) {
            UnifiedLog log = UnifiedLog.create(
                new File(arguments[at]), config, 0, 0, scheduler, new BrokerTopicStats(), Time.SYSTEM, day,
                new ProducerStateManagerConfig(day, false), day, new LogDirFailureChannel(1), true, Optional.empty());
            log.updateHighWatermark(log.logEndOffset());
            Cleaner cleaner = new Cleaner(
                0, new SkimpyOffsetMap(1 << 20), 1 << 16, 1 << 20, 0.9,
                new Throttler(Double.MAX_VALUE, 300, "cleaner-io", "bytes", Time.SYSTEM), Time.SYSTEM, partition -> { });
            LogToClean target = new LogToClean(log, 0, log.lastStableOffset(), false);
            System.out.println("clean below " + cleaner.doClean(target, Long.parseLong(arguments[at + 1])).getKey());
            log.close();
        }
        scheduler.shutdown();
    }
}
