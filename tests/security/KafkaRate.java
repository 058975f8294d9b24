import java.io.BufferedReader;
import java.io.InputStreamReader;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.stats.Rate;

/** Reads what is used when, a line each, and answers for how long Kafka's quotas have a client wait then. */
public class KafkaRate {
    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        Rate rate = null;
        MetricConfig config = null;
        double limit = 0;
        StringBuilder out = new StringBuilder();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] fields = line.split(" ");
            if (fields[0].equals("new")) {
                config = new MetricConfig().samples(Integer.parseInt(fields[1]))
                    .timeWindow(Long.parseLong(fields[2]), java.util.concurrent.TimeUnit.MILLISECONDS);
                limit = Double.parseDouble(fields[3]);
                rate = new Rate();
                continue;
            }
            long now = Long.parseLong(fields[1]);
            rate.record(config, Double.parseDouble(fields[0]), now);
            double value = rate.measure(config, now);
            long wait = 0;
            // As QuotaUtils.throttleTime has it.
            if (value > limit) wait = Math.round((value - limit) / limit * rate.windowSize(config, now));
            out.append(wait).append('\n');
        }
        System.out.print(out);
    }
}
