package aeronspark;

import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.AcceptsLatestSeenOffset;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.types.StructType;

/** The stream of the Python source, whose planned partitions the JVM reads where it can. For Spark before 4.2. */
class AeronStream implements MicroBatchStream, AcceptsLatestSeenOffset {
    private final MicroBatchStream python;
    private final StructType schema;
    private boolean isForJvm = true;
    private boolean needsPython;
    private String sbe;
    private boolean isStopped;

    AeronStream(MicroBatchStream python, StructType schema) {
        this.python = python;
        this.schema = schema;
    }

    @Override
    public InputPartition[] planInputPartitions(Offset start, Offset end) {
        InputPartition[] partitions = python.planInputPartitions(start, end);
        Planned[] planned = Planned.of(partitions);
        isForJvm = Planned.areForJvm(planned, schema);
        sbe = Planned.sbeOf(planned);
        needsPython = !isForJvm || Planned.mayHandOver(planned);
        return isForJvm ? planned : partitions;
    }

    /** Spark asks for it after the partitions. Python's costs a call of Python. */
    @Override
    public PartitionReaderFactory createReaderFactory() {
        return new AeronReaderFactory(schema, schema, Long.MAX_VALUE, needsPython ? python.createReaderFactory() : null, sbe);
    }

    @Override
    public Offset initialOffset() {
        return python.initialOffset();
    }

    @Override
    public Offset latestOffset() {
        return python.latestOffset();
    }

    @Override
    public Offset deserializeOffset(String json) {
        return python.deserializeOffset(json);
    }

    @Override
    public void commit(Offset end) {
        // With asynchronous progress, Spark commits what is left after it has stopped the source.
        if (!isStopped) {
            python.commit(end);
        }
    }

    @Override
    public void stop() {
        isStopped = true;
        python.stop();
    }

    @Override
    public void setLatestSeenOffset(Offset offset) {
        if (python instanceof AcceptsLatestSeenOffset) {
            ((AcceptsLatestSeenOffset) python).setLatestSeenOffset(offset);
        }
    }
}
