package aeronspark;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;

/** The columns of SBE messages among those that are asked for, which C decodes batch by batch. */
final class SbeColumns implements AutoCloseable {
    private final List<String> wanted = new ArrayList<>();
    private final long sbe;

    /** @param plan by Python (reading/payload.py): the bytes that C runs, and the columns in their order */
    SbeColumns(JsonNode plan, StructType schema) {
        JsonNode columns = plan.get("columns");
        byte[] choice = new byte[columns.size()];
        for (int at = 0; at < choice.length; at++) {
            String name = columns.get(at).asText();
            if (schema.getFieldIndex(name).isDefined()) {
                choice[at] = 1;
                wanted.add(name);
            }
        }
        Native.load();
        try {
            sbe = Native.checked(Native.openSbe(plan.get("program").binaryValue(), choice));
        } catch (IOException error) {
            throw new IllegalStateException("the SBE plan of the Python package is no text of base 64", error);
        }
    }

    /** Decodes the batch of messages that was read last; the number of its rows, or a result below 0. */
    int decode(long rows) {
        return Native.decode(sbe, rows);
    }

    /** 4 bytes a row, its message; 0 where each message is one row. */
    long messages() {
        return Native.sbePayloads(sbe);
    }

    boolean has(String name) {
        return wanted.contains(name);
    }

    /** @param owner holds this, until no column needs it */
    ColumnVector column(StructField field, Object owner) {
        return new ArrowColumn(field.dataType(), ArrowColumn.child(Native.sbeArray(sbe), wanted.indexOf(field.name())), owner);
    }

    @Override
    public void close() {
        Native.closeSbe(sbe);
    }
}
