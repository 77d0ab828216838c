package aeronspark;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.OptionalLong;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.types.StructType;

/** A batch read by the JVM's engine. */
final class AeronScan implements Scan, Batch, SupportsReportStatistics {
    private final Planned[] partitions;
    private final AeronReaderFactory factory;
    private final StructType schema;
    private final long limit;

    AeronScan(Planned[] partitions, StructType schema, long limit, AeronReaderFactory factory) {
        this.partitions = partitions;
        this.schema = schema;
        this.limit = limit;
        this.factory = factory;
    }

    @Override
    public StructType readSchema() {
        return schema;
    }

    @Override
    public String description() {
        return "aeron engine=jvm " + (limit == Long.MAX_VALUE ? "" : "limit=" + limit + " ") + schema.simpleString();
    }

    @Override
    public Batch toBatch() {
        return this;
    }

    @Override
    public InputPartition[] planInputPartitions() {
        return partitions;
    }

    @Override
    public PartitionReaderFactory createReaderFactory() {
        return factory;
    }

    @Override
    public CustomMetric[] supportedCustomMetrics() {
        return Metrics.all();
    }

    /** Bytes of the recordings; how many messages these are, nobody has counted. */
    @Override
    public Statistics estimateStatistics() {
        long bytes = 0;
        for (Planned partition : partitions) {
            for (JsonNode range : partition.ranges()) {
                bytes += range.get(2).asLong() - range.get(1).asLong();
            }
        }
        OptionalLong size = OptionalLong.of(bytes);
        return new Statistics() {
            @Override
            public OptionalLong sizeInBytes() {
                return size;
            }

            @Override
            public OptionalLong numRows() {
                return OptionalLong.empty();
            }
        };
    }
}
