package aeronspark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import net.razorvine.pickle.PickleException;
import net.razorvine.pickle.Unpickler;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Product;

/** A partition as Python has planned it (reading/batch.py, planning/engine.py): ranges, and how the JVM reads them. */
final class Planned implements InputPartition {
    private static final EngineLog LOG = new EngineLog();
    private static final long serialVersionUID = 1;

    /** A pickle is a call of this function with one text. */
    private static final String MODULE = "aeron_spark.spark.reading.batch";
    private static final String FUNCTION = "partition_of";

    static {
        Unpickler.registerConstructor(MODULE, FUNCTION, arguments -> arguments[0]);
    }

    private final InputPartition python;
    private final String text;
    private transient JsonNode parsed;

    private Planned(InputPartition python) {
        this.python = python;
        this.text = textOf(python);
    }

    /** Of the partitions of Spark's Python source; throws for those of another version of the package. */
    static Planned[] of(InputPartition[] partitions) {
        Planned[] planned = new Planned[partitions.length];
        for (int at = 0; at < planned.length; at++) {
            planned[at] = new Planned(partitions[at]);
        }
        return planned;
    }

    /** The answer to a request, which stands in place of the end of a micro-batch (reading/stream.py). */
    static Planned[] asked(MicroBatchStream python, Offset start, JsonNode request) {
        return of(python.planInputPartitions(start, python.deserializeOffset(request.toString())));
    }

    /** Spark's partitions of a batch and of a stream have the pickle by one name. */
    private static String textOf(InputPartition partition) {
        try {
            byte[] pickle = (byte[]) partition.getClass().getMethod("pickedPartition").invoke(partition);
            return (String) new Unpickler().loads(pickle);
        } catch (NoSuchMethodException | IllegalAccessException | InvocationTargetException | IOException
            | PickleException | ClassCastException error) {
            throw new IllegalStateException("the jar of aeron_spark " + Version.TEXT + " cannot read what the Python package has planned, "
                + "as it is of another version: " + Version.ADVICE, error);
        }
    }

    /**
     * Whether the JVM reads these columns of them; logs one line when the answer is another one than the last. Throws for another
     * version's, and where nothing but the JVM may read.
     */
    static boolean areForJvm(Planned[] partitions, StructType schema) {
        if (partitions.length == 0) {
            return true;
        }
        JsonNode job = partitions[0].job();
        String lack = job.has("lack") ? job.get("lack").asText() : null;
        if (lack == null) {
            Version.check(job.get("version").asText());
            lack = lackOf(job.get("sbe"), schema);
        }
        if (lack != null && job.get("isJvmAlone").asBoolean()) {
            throw new AeronException(AeronException.USAGE, "engine=jvm cannot read with " + lack + ": leave engine out, which then takes "
                + "Python, or that option");
        }
        LOG.info(lack == null ? "engine=jvm: it can read all that is asked for"
            : "engine=python: the JVM's engine does not read with " + lack);
        return lack == null;
    }

    /** The first column that C does not make. */
    private static String lackOf(JsonNode sbe, StructType schema) {
        for (StructField field : schema.fields()) {
            JsonNode lack = sbe == null ? null : sbe.get("lacks").get(field.name());
            if (lack != null) {
                return "column " + field.name() + ": " + lack.asText();
            }
        }
        return null;
    }

    /** How messages are decoded, which the first partition has for all; null where they are not. */
    static String sbeOf(Planned[] partitions) {
        JsonNode sbe = partitions.length == 0 ? null : partitions[0].job().get("sbe");
        return sbe == null ? null : sbe.toString();
    }

    /** Whether the JVM may leave some of it to Python. */
    static boolean mayHandOver(Planned[] partitions) {
        return partitions.length > 0 && partitions[0].job().get("handsOver").asBoolean();
    }

    JsonNode job() {
        return parsed().get("job");
    }

    /** In Real-Time Mode: tasks read beyond the ends of the ranges. */
    boolean isFollowed() {
        return job().has("known");
    }

    /** Each: recording id, start, end, limit. */
    JsonNode ranges() {
        return parsed().get("ranges");
    }

    /** Some ranges of this partition for the Python reader, which is told that the JVM has left them to it. */
    InputPartition handedOver(ArrayNode ranges) {
        ObjectNode whole = parsed().deepCopy();
        whole.set("ranges", ranges);
        ((ObjectNode) whole.get("job")).put("isHandedOver", true).remove("sbe");
        Product fields = (Product) python;
        Object[] copied = new Object[fields.productArity()];
        for (int at = 0; at < copied.length; at++) {
            Object field = fields.productElement(at);
            copied[at] = field instanceof byte[] ? pickleOf(whole.toString()) : field;
        }
        try {
            return (InputPartition) python.getClass().getConstructors()[0].newInstance(copied);
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException("this Spark has partitions of Python sources that the jar of aeron_spark " + Version.TEXT
                + " does not know: read with engine=python", error);
        }
    }

    /** A call of partition_of with one text, in protocol 2. */
    private static byte[] pickleOf(String text) {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        ByteArrayOutputStream pickle = new ByteArrayOutputStream(bytes.length + 64);
        pickle.writeBytes(new byte[] {(byte) 0x80, 2});
        pickle.writeBytes(("c" + MODULE + "\n" + FUNCTION + "\nX").getBytes(StandardCharsets.US_ASCII));
        pickle.writeBytes(ByteBuffer.allocate(4).order(ByteOrder.LITTLE_ENDIAN).putInt(bytes.length).array());
        pickle.writeBytes(bytes);
        pickle.writeBytes(new byte[] {(byte) 0x85, 'R', '.'});
        return pickle.toByteArray();
    }

    private JsonNode parsed() {
        if (parsed == null) {
            parsed = parse(text);
        }
        return parsed;
    }

    static JsonNode parse(String json) {
        try {
            return new ObjectMapper().readTree(json);
        } catch (IOException error) {
            throw new IllegalStateException("the Python package of aeron_spark has planned what is no JSON: " + json, error);
        }
    }
}
