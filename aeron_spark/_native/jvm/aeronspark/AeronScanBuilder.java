package aeronspark;

import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.SupportsPushDownFilters;
import org.apache.spark.sql.connector.read.SupportsPushDownLimit;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** A batch read: Python plans it, with filters where they are pushed (Spark still applies them all); columns are pruned here. */
final class AeronScanBuilder implements SupportsPushDownRequiredColumns, SupportsPushDownFilters, SupportsPushDownLimit {
    private final ScanBuilder planning;
    private final StructType all;
    private StructType schema;
    private long limit = Long.MAX_VALUE;

    AeronScanBuilder(ScanBuilder planning, StructType schema) {
        this.planning = planning;
        this.all = schema;
        this.schema = schema;
    }

    @Override
    public Filter[] pushFilters(Filter[] filters) {
        return planning instanceof SupportsPushDownFilters ? ((SupportsPushDownFilters) planning).pushFilters(filters) : filters;
    }

    @Override
    public Filter[] pushedFilters() {
        return planning instanceof SupportsPushDownFilters ? ((SupportsPushDownFilters) planning).pushedFilters() : new Filter[0];
    }

    /** Of each task. */
    @Override
    public boolean pushLimit(int rows) {
        limit = rows;
        return true;
    }

    /** Spark still limits what all tasks give. */
    @Override
    public boolean isPartiallyPushed() {
        return true;
    }

    /** Whole columns: a struct of which a query asks for a part is read with all of its fields. */
    @Override
    public void pruneColumns(StructType required) {
        StructField[] fields = new StructField[required.length()];
        for (int at = 0; at < fields.length; at++) {
            fields[at] = all.apply(required.apply(at).name());
        }
        schema = new StructType(fields);
    }

    /** Plans the read now: whether the JVM can read it, its partitions say. */
    @Override
    public Scan build() {
        Scan python = planning.build();
        Batch batch = python.toBatch();
        Planned[] planned = Planned.of(batch.planInputPartitions());
        if (!Planned.areForJvm(planned, schema)) {
            return python;
        }
        PartitionReaderFactory rest = Planned.mayHandOver(planned) ? batch.createReaderFactory() : null;
        return new AeronScan(planned, schema, limit, new AeronReaderFactory(schema, all, limit, rest, Planned.sbeOf(planned)));
    }
}
