import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.utils.Exit;

/** Kafka's command-line tools, called by their main classes in this JVM, with stdin, stdout and exit status caught. */
final class Tools {
    @SuppressWarnings("serial")
    private static final class Exited extends Error {  // not an Exception: the tools catch those
        final int status;
        final String output;

        Exited(int status, String output) {
            super("exit " + status);
            this.status = status;
            this.output = output;
        }
    }

    static JsonNode run(ObjectNode request) throws Exception {
        List<String> arguments = new ArrayList<>();
        request.get("arguments").forEach(each -> arguments.add(each.asText()));
        ByteArrayOutputStream told = new ByteArrayOutputStream();
        InputStream stdin = System.in;
        PrintStream stdout = System.out;
        PrintStream stderr = System.err;
        PrintStream caught = new PrintStream(told, true, StandardCharsets.UTF_8);
        System.setIn(new ByteArrayInputStream(request.path("stdin").asText("").getBytes(StandardCharsets.UTF_8)));
        System.setOut(caught);
        System.setErr(caught);
        // Some tools catch the end that they asked for and then ask for another: the first one counts.
        List<Exited> exits = new ArrayList<>();
        Exit.setExitProcedure((status, message) -> {
            exits.add(new Exited(status, told.toString(StandardCharsets.UTF_8)));
            throw exits.get(0);
        });
        try {
            Class<?> tool = Class.forName(request.get("main").asText());
            tool.getMethod("main", String[].class).invoke(null, (Object) arguments.toArray(new String[0]));
        } catch (InvocationTargetException thrown) {
            if (exits.isEmpty()) {
                throw thrown.getCause() instanceof Exception cause ? cause : thrown;
            }
        } finally {
            Exit.resetExitProcedure();
            System.setIn(stdin);
            System.setOut(stdout);
            System.setErr(stderr);
        }
        Exited end = exits.isEmpty() ? new Exited(0, told.toString(StandardCharsets.UTF_8)) : exits.get(0);
        return Agent.JSON.createObjectNode().put("status", end.status).put("output", end.output);
    }
}
