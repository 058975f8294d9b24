import java.util.List;
import java.util.Map;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.ParsedSchema;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.avro.AvroSchema;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.client.CachedSchemaRegistryClient;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.client.SchemaMetadata;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.client.rest.entities.SchemaReference;
import org.apache.flink.avro.registry.confluent.shaded.io.confluent.kafka.schemaregistry.client.rest.exceptions.RestClientException;

/** Calls of Confluent's own Java client against the registry whose address it is given; one line for each answer. */
public class ConfluentClient {
  public static void main(String[] arguments) throws Exception {
    CachedSchemaRegistryClient client = new CachedSchemaRegistryClient(arguments[0], 100);
    String subject = "java-value";
    AvroSchema order = new AvroSchema(
        "{\"type\":\"record\",\"name\":\"Order\",\"fields\":[{\"name\":\"id\",\"type\":\"long\"}]}");
    AvroSchema newer = new AvroSchema("{\"type\":\"record\",\"name\":\"Order\",\"fields\":[{\"name\":\"id\",\"type\":"
        + "\"long\"},{\"name\":\"note\",\"type\":\"string\",\"default\":\"\"}]}");
    AvroSchema misfit = new AvroSchema(
        "{\"type\":\"record\",\"name\":\"Order\",\"fields\":[{\"name\":\"yen\",\"type\":\"long\"}]}");
    int id = client.register(subject, order);
    say("registered", id == client.register(subject, order));
    say("by id", client.getSchemaById(id).equals(order));
    say("by subject and id", client.getSchemaBySubjectAndId(subject, id).equals(order));
    say("version", client.getVersion(subject, order));
    say("id", client.getId(subject, order) == id);
    say("compatible", client.testCompatibility(subject, newer));
    say("incompatible", client.testCompatibility(subject, misfit));
    say("why", client.testCompatibilityVerbose(subject, misfit).toString().contains("READER_FIELD_MISSING_DEFAULT_VALUE"));
    try {
      client.register(subject, misfit);
    } catch (RestClientException error) {
      say("refused", error.getStatus() + " " + error.getErrorCode());
    }
    client.register(subject, newer);
    SchemaMetadata latest = client.getLatestSchemaMetadata(subject);
    say("latest", latest.getVersion() + " " + latest.getSchemaType() + " " + latest.getSchema().contains("note"));
    say("metadata", client.getSchemaMetadata(subject, 1).getId() == id);
    say("versions", client.getAllVersions(subject));
    say("subjects", client.getAllSubjects().contains(subject));
    say("by prefix", client.getAllSubjectsByPrefix("java-"));
    say("of id", client.getAllSubjectsById(id));
    say("level", client.updateCompatibility(subject, "FULL") + " " + client.getCompatibility(subject));
    say("mode", client.setMode("READONLY", subject) + " " + client.getMode(subject));
    client.setMode("READWRITE", subject);
    AvroSchema trip = new AvroSchema(
        "{\"type\":\"record\",\"name\":\"Trip\",\"fields\":[{\"name\":\"order\",\"type\":\"Order\"}]}",
        List.of(new SchemaReference("Order", subject, 1)), Map.of("Order", order.canonicalString()), null);
    int tripId = client.register("trip-value", trip);
    ParsedSchema read = new CachedSchemaRegistryClient(arguments[0], 100).getSchemaById(tripId);
    say("references", read.references().size() + " " + read.name());
    try {
      client.getSchemaById(999999);
    } catch (RestClientException error) {
      say("unknown", error.getStatus() + " " + error.getErrorCode());
    }
    say("deleted version", client.deleteSchemaVersion(subject, "2"));
    client.deleteSubject("trip-value");
    say("deleted", client.deleteSubject(subject) + " " + client.deleteSubject(subject, true));
  }

  private static void say(String what, Object answer) {
    System.out.println(what + ": " + answer);
  }
}
