import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AccessControlEntryFilter;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.internals.PluginMetricsImpl;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourcePatternFilter;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.utils.SecurityUtils;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;

/** Reads rules and questions, a line each with tabs between its fields, and answers what Kafka's authorizer decides. */
public class KafkaAuthorizer {
    record Context(KafkaPrincipal principal, InetAddress clientAddress) implements AuthorizableRequestContext {
        public String listenerName() { return "SSL"; }
        public SecurityProtocol securityProtocol() { return SecurityProtocol.SSL; }
        public int requestType() { return 0; }
        public int requestVersion() { return 0; }
        public String clientId() { return ""; }
        public int correlationId() { return 0; }
    }

    static String orNull(String text) { return text.equals("-") ? null : text; }

    static Context context(String[] f) throws Exception {
        return new Context(SecurityUtils.parseKafkaPrincipal(f[1]), InetAddress.getByName(f[2]));
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        StringBuilder out = new StringBuilder();
        StandardAuthorizer authorizer = null;
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] f = line.split("\t", -1);
            switch (f[0]) {
                case "new" -> {
                    authorizer = new StandardAuthorizer();
                    authorizer.configure(Map.of("super.users", f[1], "allow.everyone.if.no.acl.found", f[2]));
                    authorizer.withPluginMetrics(new PluginMetricsImpl(new Metrics(), Map.of()));
                    authorizer.completeInitialLoad();
                }
                case "acl" -> authorizer.addAcl(Uuid.randomUuid(), new StandardAcl(ResourceType.valueOf(f[1]), f[2],
                    PatternType.valueOf(f[3]), f[4], f[5], AclOperation.valueOf(f[6]), AclPermissionType.valueOf(f[7])));
                case "may" -> out.append(authorizer.authorize(context(f), List.of(new Action(AclOperation.valueOf(f[3]),
                    new ResourcePattern(ResourceType.valueOf(f[4]), f[5], PatternType.LITERAL), 1, true, true))).get(0))
                    .append('\n');
                case "any" -> out.append(authorizer.authorizeByResourceType(context(f), AclOperation.valueOf(f[3]),
                    ResourceType.valueOf(f[4]))).append('\n');
                case "find" -> {
                    TreeSet<String> found = new TreeSet<>();
                    for (AclBinding one : authorizer.acls(new AclBindingFilter(
                            new ResourcePatternFilter(ResourceType.valueOf(f[1]), orNull(f[2]), PatternType.valueOf(f[3])),
                            new AccessControlEntryFilter(orNull(f[4]), orNull(f[5]), AclOperation.valueOf(f[6]),
                                AclPermissionType.valueOf(f[7]))))) {
                        found.add(String.join(" ", one.pattern().resourceType().name(), one.pattern().name(),
                            one.pattern().patternType().name(), one.entry().principal(), one.entry().host(),
                            one.entry().operation().name(), one.entry().permissionType().name()));
                    }
                    out.append(String.join("; ", found)).append('\n');
                }
                default -> throw new IllegalArgumentException(line);
            }
        }
        System.out.write(out.toString().getBytes(StandardCharsets.UTF_8));
        System.out.flush();
    }
}
