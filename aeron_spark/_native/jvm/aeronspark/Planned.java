package aeronspark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import net.razorvine.pickle.PickleException;
import net.razorvine.pickle.Unpickler;
import org.apache.spark.sql.connector.read.InputPartition;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A partition as Python has planned it (reading/batch.py, planning/engine.py): ranges, and how the JVM reads them. */
final class Planned implements InputPartition {
    private static final Logger LOG = LoggerFactory.getLogger("aeron");
    private static final long serialVersionUID = 1;
    private static String logged = "";

    static {
        // The pickle is a call of this function with one text.
        Unpickler.registerConstructor("aeron_spark.spark.reading.batch", "partition_of", arguments -> arguments[0]);
    }

    private final String text;
    private transient JsonNode parsed;

    private Planned(String text) {
        this.text = text;
    }

    /** Of the partitions of Spark's Python source; throws for those of another version of the package. */
    static Planned[] of(InputPartition[] partitions) {
        Planned[] planned = new Planned[partitions.length];
        for (int at = 0; at < planned.length; at++) {
            planned[at] = new Planned(textOf(partitions[at]));
        }
        return planned;
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

    /** Whether the JVM reads these; logs one line when the answer is another one than the last. Throws for another version's. */
    static boolean areForJvm(Planned[] partitions) {
        if (partitions.length == 0) {
            return true;
        }
        JsonNode why = partitions[0].job().get("why");
        if (why == null) {
            Version.check(partitions[0].job().get("version").asText());
        }
        log(why == null ? "engine=jvm: it can read all that is asked for" : "engine=python: " + why.asText());
        return why == null;
    }

    private static synchronized void log(String line) {
        if (!line.equals(logged)) {
            logged = line;
            LOG.info(line);
        }
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

    private JsonNode parsed() {
        if (parsed == null) {
            try {
                parsed = new ObjectMapper().readTree(text);
            } catch (IOException error) {
                throw new IllegalStateException("the Python package of aeron_spark has planned what is no JSON: " + text, error);
            }
        }
        return parsed;
    }
}
