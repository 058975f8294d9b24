import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.ExecutionException;

/**
 * One JVM that does what a test asks: a JSON object per line on stdin, one per line back on stdout.
 *
 * Starting a JVM costs more than most of the steps, so it is started once for all tests. Every request names the broker
 * ("bootstrap") and the step ("op"); the answer has "result", or "error" with the class and message of what was thrown.
 */
public final class Agent {
    static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = System.out;
        System.setOut(System.err);
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Members members = new Members();
        Transactions transactions = new Transactions();
        for (String line; (line = requests.readLine()) != null; ) {
            ObjectNode answer = JSON.createObjectNode();
            try {
                answer.set("result", perform((ObjectNode) JSON.readTree(line), members, transactions));
            } catch (Throwable thrown) {
                Throwable cause = thrown instanceof ExecutionException ? thrown.getCause() : thrown;
                answer.put("error", cause.getClass().getSimpleName() + ": " + cause.getMessage());
            }
            answers.println(JSON.writeValueAsString(answer));
            answers.flush();
        }
        System.exit(0);
    }

    private static JsonNode perform(ObjectNode request, Members members, Transactions transactions) throws Exception {
        String op = request.get("op").asText();
        if (op.startsWith("txn_")) {
            return transactions.perform(op, request);
        }
        switch (op) {
            case "hello":
                return JSON.valueToTree(org.apache.kafka.common.utils.AppInfoParser.getVersion());
            case "produce":
                return Records.produce(request);
            case "consume":
                return Records.consume(request);
            case "join":
                return members.join(request);
            case "seen":
                return members.seen(request);
            case "leave":
                return members.leave(request);
            case "tool":
                return Tools.run(request);
            default:
                return AdminSteps.perform(op, request);
        }
    }
}
