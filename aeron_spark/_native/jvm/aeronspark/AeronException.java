package aeronspark;

import org.apache.spark.QueryContext;
import org.apache.spark.SparkRuntimeException;
import scala.collection.immutable.Map;
import scala.collection.immutable.Map$;
import scala.jdk.javaapi.CollectionConverters;

/** An error with the name and the text that it has in Python; Spark gives it to a Python program as one of its own errors. */
public final class AeronException extends SparkRuntimeException {
    static final int USAGE = -1;
    static final int PEER = -4;
    static final int STORAGE = -5;
    static final int DATA = -6;
    static final int INTERNAL = -7;
    private static final String[] NAMES = {
        "UsageError", "WaitTimeoutError", "ClosedError", "PeerError", "StorageError", "DataLossError", "InternalError"};
    private static final long serialVersionUID = 1;

    private final int kind;
    private final String text;

    AeronException(int kind, String text) {
        this("read", kind, text);
    }

    private AeronException(String action, int kind, String text) {
        super("PYTHON_DATA_SOURCE_ERROR", parameters(action, kind, text), null, new QueryContext[0], "");
        this.kind = kind;
        this.text = text;
    }

    private static Map<String, String> parameters(String action, int kind, String text) {
        String name = NAMES[kind < 0 && -kind <= NAMES.length ? -kind - 1 : NAMES.length - 1];
        String message = "aeron_spark.errors." + name + ": " + text;
        var named = java.util.Map.of("action", action, "type", "aeron", "msg", message);
        return Map$.MODULE$.from(CollectionConverters.asScala(named));
    }

    /** Of a write that cannot be as the user asks for it. */
    static AeronException ofWrite(String text) {
        return new AeronException("write", USAGE, text);
    }

    static AeronException dataLoss(String text) {
        return new AeronException(DATA, text);
    }

    boolean is(int other) {
        return kind == other;
    }

    /** Without the name. */
    String text() {
        return text;
    }
}
