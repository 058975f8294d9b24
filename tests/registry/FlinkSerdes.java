import java.util.Base64;
import java.util.Scanner;
import org.apache.flink.avro.shaded.org.apache.avro.Schema;
import org.apache.flink.avro.shaded.org.apache.avro.generic.GenericData;
import org.apache.flink.avro.shaded.org.apache.avro.generic.GenericRecord;
import org.apache.flink.formats.avro.registry.confluent.ConfluentRegistryAvroDeserializationSchema;
import org.apache.flink.formats.avro.registry.confluent.ConfluentRegistryAvroSerializationSchema;

/** Writes an order under a subject and prints it in base64; then reads one that is given by the reader's schema. */
public class FlinkSerdes {
    public static void main(String[] arguments) throws Exception {
        String url = arguments[0], subject = arguments[1];
        Schema written = new Schema.Parser().parse(arguments[2]), reader = new Schema.Parser().parse(arguments[3]);
        GenericRecord order = new GenericData.Record(written);
        order.put("id", 7L);
        order.put("customer", "Ada");
        byte[] value = ConfluentRegistryAvroSerializationSchema.forGeneric(subject, written, url).serialize(order);
        System.out.println(Base64.getEncoder().encodeToString(value));
        byte[] given = Base64.getDecoder().decode(new Scanner(System.in).nextLine());
        System.out.println(ConfluentRegistryAvroDeserializationSchema.forGeneric(reader, url).deserialize(given));
    }
}
