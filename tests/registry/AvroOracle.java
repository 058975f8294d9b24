import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import org.apache.avro.Schema;
import org.apache.avro.SchemaCompatibility;
import org.apache.avro.SchemaCompatibility.SchemaCompatibilityType;

/** Reads a reader's and a writer's schema, a line each; writes the verdict and the reader's text form as Java has it. */
public class AvroOracle {
  public static void main(String[] arguments) throws Exception {
    BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    StringBuilder answers = new StringBuilder();
    for (String reader = input.readLine(); reader != null; reader = input.readLine()) {
      answers.append(answer(reader, input.readLine())).append('\n');
    }
    System.out.write(answers.toString().getBytes(StandardCharsets.UTF_8));
    System.out.flush();
  }

  private static String answer(String readerText, String writerText) {
    Schema reader;
    Schema writer;
    try {
      reader = new Schema.Parser().parse(readerText);
      writer = new Schema.Parser().parse(writerText);
    } catch (RuntimeException error) {
      return "invalid\t" + error.getMessage().replace('\n', ' ').replace('\t', ' ');
    }
    try {
      boolean fits = SchemaCompatibility.checkReaderWriterCompatibility(reader, writer).getType()
          == SchemaCompatibilityType.COMPATIBLE;
      return (fits ? "compatible" : "incompatible") + "\t" + reader;
    } catch (RuntimeException error) {
      return "error\t" + error;
    }
  }
}
