package aeronspark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Base64;
import java.util.HexFormat;
import java.util.Map;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * Reads planned partitions as Spark's tasks do, in a JVM without Spark: a command a line on standard input, an answer a line on
 * standard output, both JSON. tests/kit/jvm_reader.py speaks to it.
 */
public final class ReadPlanned {
    private static final ObjectMapper JSON = new ObjectMapper();

    private AeronReader reader;
    private StructType schema;
    private ColumnarBatch batch;

    /** A partition as those of Spark's Python sources are. */
    public record Pickled(byte[] pickedPartition) implements InputPartition {
    }

    public static void main(String[] arguments) throws IOException {
        PrintStream answers = new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);
        System.setOut(System.err); // of libraries
        ReadPlanned task = new ReadPlanned();
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            answers.println(JSON.writeValueAsString(task.answer(JSON.readTree(line))));
        }
    }

    private Map<String, Object> answer(JsonNode command) {
        try {
            return switch (command.get("do").asText()) {
                case "open" -> open(command);
                case "read" -> read(command.get("batches").asInt(), command.get("texts").asBoolean());
                case "close" -> close();
                case "read again" -> Map.of("rows", batch.numRows(), "digest", digest(batch));
                default -> throw new IllegalArgumentException(command.toString());
            };
        } catch (Exception | LinkageError error) { // what ends a task and not its executor
            return Map.of("error", error.toString());
        }
    }

    private Map<String, Object> open(JsonNode command) {
        byte[] pickle = Base64.getDecoder().decode(command.get("partition").asText());
        schema = (StructType) DataType.fromJson(command.get("schema").asText());
        Planned[] planned = Planned.of(new InputPartition[] {new Pickled(pickle)});
        batch = null;
        reader = new AeronReader(planned[0], schema, Long.MAX_VALUE,
            new AeronReaderFactory(schema, schema, Long.MAX_VALUE, null, Planned.sbeOf(planned)));
        return Map.of();
    }

    private Map<String, Object> close() throws IOException {
        if (reader != null) {
            reader.close();
        }
        return Map.of();
    }

    /** At most so many batches: the number of rows, and a digest of their texts. */
    private Map<String, Object> read(int batches, boolean hasTexts) throws NoSuchAlgorithmException, IOException {
        MessageDigest digest = MessageDigest.getInstance("SHA-256");
        long rows = 0;
        for (int count = 0; count < batches && reader.next(); count++) {
            batch = reader.get();
            if (hasTexts) {
                addTo(digest, batch);
            }
            rows += batch.numRows();
        }
        return Map.of("rows", rows, "digest", HexFormat.of().formatHex(digest.digest()));
    }

    private String digest(ColumnarBatch columns) throws NoSuchAlgorithmException {
        MessageDigest digest = MessageDigest.getInstance("SHA-256");
        addTo(digest, columns);
        return HexFormat.of().formatHex(digest.digest());
    }

    private void addTo(MessageDigest digest, ColumnarBatch columns) {
        for (int row = 0; row < columns.numRows(); row++) {
            digest.update(text(columns, row).getBytes(StandardCharsets.UTF_8));
        }
    }

    private String text(ColumnarBatch columns, int row) {
        StringBuilder text = new StringBuilder();
        for (int at = 0; at < schema.length(); at++) {
            text.append(value(columns.column(at), schema.apply(at).dataType().typeName(), row)).append(',');
        }
        return text.append('\n').toString();
    }

    private static Object value(ColumnVector column, String type, int row) {
        if (column.isNullAt(row)) {
            return "None";
        }
        return switch (type) {
            case "long", "timestamp" -> column.getLong(row);
            case "integer" -> column.getInt(row);
            case "short" -> column.getShort(row);
            case "binary" -> HexFormat.of().formatHex(column.getBinary(row));
            case "string" -> column.getUTF8String(row);
            default -> throw new IllegalArgumentException(type);
        };
    }
}
