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
    private final StructType all;
    private final long limit;
    private final PartitionReaderFactory python;
    private final String sbe;

    /**
     * @param schema the columns that are asked for
     * @param all those that Python reads
     * @param limit rows of a task; it may give more
     * @param python for what the JVM does not read; null where that cannot be
     * @param sbe how messages are decoded, as Python has planned it; null where they are not
     */
    AeronReaderFactory(StructType schema, StructType all, long limit, PartitionReaderFactory python, String sbe) {
        this.schema = schema;
        this.all = all;
        this.limit = limit;
        this.python = python;
        this.sbe = sbe;
    }

    @Override
    public boolean supportColumnarReads(InputPartition partition) {
        return partition instanceof Planned && !((Planned) partition).isFollowed();
    }

    @Override
    public PartitionReader<ColumnarBatch> createColumnarReader(InputPartition partition) {
        return new AeronReader((Planned) partition, schema, limit, this);
    }

    /** Decodes messages; null where they are columns as they are. */
    SbeColumns openSbe() {
        return sbe == null ? null : new SbeColumns(Planned.parse(sbe), schema);
    }

    @Override
    public PartitionReader<InternalRow> createReader(InputPartition partition) {
        return partition instanceof Planned ? new AeronRealTimeReader((Planned) partition, schema) : python.createReader(partition);
    }

    /** Rows of a partition that the JVM leaves to Python. */
    PythonColumns readInPython(InputPartition partition, long mostBytes) {
        return new PythonColumns(python.createReader(partition), all, schema, mostBytes);
    }
}
