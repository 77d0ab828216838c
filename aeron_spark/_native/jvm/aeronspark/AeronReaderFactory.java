package aeronspark;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Readers of partitions: of ours in columns, or row by row in Real-Time Mode; of Python's as Spark reads them. */
final class AeronReaderFactory implements PartitionReaderFactory {
    private static final long serialVersionUID = 1;

    private final StructType schema;
    private final PartitionReaderFactory python;

    /** @param python for partitions that the JVM does not read; null where there are none */
    AeronReaderFactory(StructType schema, PartitionReaderFactory python) {
        this.schema = schema;
        this.python = python;
    }

    @Override
    public boolean supportColumnarReads(InputPartition partition) {
        return partition instanceof Planned && !((Planned) partition).isFollowed();
    }

    @Override
    public PartitionReader<ColumnarBatch> createColumnarReader(InputPartition partition) {
        return new AeronReader((Planned) partition, schema);
    }

    @Override
    public PartitionReader<InternalRow> createReader(InputPartition partition) {
        return partition instanceof Planned ? new AeronRealTimeReader((Planned) partition, schema) : python.createReader(partition);
    }
}
