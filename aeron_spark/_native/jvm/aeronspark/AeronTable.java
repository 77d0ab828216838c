package aeronspark;

import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.execution.datasources.DataSource;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** The table of the Python source, which plans reads and writes: the JVM reads, and gathers rows to write, where it can. */
final class AeronTable implements SupportsRead, SupportsWrite {
    private final Table python;
    private final boolean isStreaming;

    AeronTable(Table python, boolean isStreaming) {
        this.python = python;
        this.isStreaming = isStreaming;
    }

    @Override
    public String name() {
        return python.name();
    }

    @Override
    @SuppressWarnings("deprecation") // the Python source answers by it
    public StructType schema() {
        return python.schema();
    }

    @Override
    public Column[] columns() {
        return python.columns();
    }

    @Override
    public Transform[] partitioning() {
        return python.partitioning();
    }

    @Override
    public Map<String, String> properties() {
        return python.properties();
    }

    @Override
    public Set<TableCapability> capabilities() {
        return python.capabilities();
    }

    /** The same table without a plan: Spark keeps the first plan with a Python table, and reads no more than that ever after. */
    @SuppressWarnings("deprecation")
    private Table anew() {
        TableProvider source = DataSource.lookupDataSourceV2(python.name(), SQLConf.get()).get();
        return source.getTable(python.schema(), new Transform[0], Map.of());
    }

    @Override
    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
        ScanBuilder planning = ((SupportsRead) (isStreaming ? python : anew())).newScanBuilder(options);
        if (isStreaming) {
            // With engine=python too, which Python's plan says: Spark gives no other reason for an error in Real-Time Mode.
            return () -> new AeronStreamScan(planning.build());
        }
        boolean isPython = "python".equalsIgnoreCase(options.getOrDefault("engine", "auto").strip());
        return isPython ? planning : new AeronScanBuilder(planning, schema());
    }

    @Override
    public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
        return AeronWriteBuilder.of((SupportsWrite) python, info);
    }
}
