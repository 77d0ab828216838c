package aeronspark;

import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A write as Python plans it where it gets blocks: by an option it knows, and this jar's version (writing/blocks.py). */
record BlockInfo(LogicalWriteInfo rows) implements LogicalWriteInfo {
    private static final String OPTION = "rowsInBlocks";
    private static final StructType SCHEMA = new StructType().add("value", DataTypes.BinaryType);

    /** Why Python gets the rows as they are, also those that cannot be written, as it says why. Null where it gets blocks. */
    static String lackOf(LogicalWriteInfo info) {
        String payload = info.options().getOrDefault("payload", "value").strip();
        if (!"value".equalsIgnoreCase(payload)) {
            return "payload=" + payload;
        }
        StructField[] fields = info.schema().fields();
        for (StructField field : fields) {
            if (!"value".equals(field.name())) {
                return "column " + field.name();
            }
        }
        if (fields.length != 1) {
            return fields.length + " columns value";
        }
        boolean isBytes = isText(info) || DataTypes.BinaryType.equals(fields[0].dataType());
        return isBytes ? null : "column value of " + fields[0].dataType().simpleString();
    }

    static boolean isText(LogicalWriteInfo info) {
        return DataTypes.StringType.equals(info.schema().apply(0).dataType());
    }

    @Override
    public StructType schema() {
        return SCHEMA;
    }

    @Override
    public CaseInsensitiveStringMap options() {
        Map<String, String> options = new HashMap<>(rows.options().asCaseSensitiveMap());
        options.keySet().removeIf(OPTION::equalsIgnoreCase);
        options.put(OPTION, Version.TEXT);
        return new CaseInsensitiveStringMap(options);
    }

    @Override
    public String queryId() {
        return rows.queryId();
    }

    @Override
    public Optional<StructType> rowIdSchema() {
        return rows.rowIdSchema();
    }

    @Override
    public Optional<StructType> metadataSchema() {
        return rows.metadataSchema();
    }
}
