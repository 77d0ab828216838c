package aeronspark;

import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.SupportsPushDownFilters;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.StructType;

/** A batch read: Python plans it, with filters where they are pushed (Spark still applies them all); columns are pruned here. */
final class AeronScanBuilder implements SupportsPushDownRequiredColumns, SupportsPushDownFilters {
    private final ScanBuilder planning;
    private StructType schema;

    AeronScanBuilder(ScanBuilder planning, StructType schema) {
        this.planning = planning;
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

    @Override
    public void pruneColumns(StructType required) {
        schema = required;
    }

    /** Plans the read now: whether the JVM can read it, its partitions say. */
    @Override
    public Scan build() {
        Scan python = planning.build();
        Planned[] planned = Planned.of(python.toBatch().planInputPartitions());
        return Planned.areForJvm(planned) ? new AeronScan(planned, schema) : python;
    }
}
