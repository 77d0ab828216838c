package aeronspark;

import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.PartitionOffset;
import org.apache.spark.sql.connector.read.streaming.SupportsRealTimeMode;
import org.apache.spark.sql.types.StructType;

/** A stream of Spark from 4.2 on: in micro-batches with limits, or in Real-Time Mode. */
final class AeronLimitedRealTimeStream extends AeronLimitedStream implements SupportsRealTimeMode {
    private final RealTime realTime;

    AeronLimitedRealTimeStream(MicroBatchStream python, StructType schema) {
        super(python, schema);
        realTime = new RealTime(python);
    }

    @Override
    public InputPartition[] planInputPartitions(Offset start) {
        return realTime.plan(start);
    }

    @Override
    public Offset mergeOffsets(PartitionOffset[] offsets) {
        return realTime.merged(offsets);
    }
}
