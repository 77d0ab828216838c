package aeronspark;

import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;
import org.apache.spark.sql.types.StructType;

/** A stream: Python plans its micro-batches. */
final class AeronStreamScan implements Scan {
    private final Scan python;

    AeronStreamScan(Scan python) {
        this.python = python;
    }

    @Override
    public StructType readSchema() {
        return python.readSchema();
    }

    @Override
    public String description() {
        return python.description();
    }

    @Override
    public CustomMetric[] supportedCustomMetrics() {
        return Metrics.all();
    }

    @Override
    public MicroBatchStream toMicroBatchStream(String checkpoint) {
        MicroBatchStream planning = python.toMicroBatchStream(checkpoint);
        boolean isLimited = planning instanceof SupportsTriggerAvailableNow;
        if (RealTime.isThere()) {
            return isLimited
                ? new AeronLimitedRealTimeStream(planning, readSchema())
                : new AeronRealTimeStream(planning, readSchema());
        }
        return isLimited ? new AeronLimitedStream(planning, readSchema()) : new AeronStream(planning, readSchema());
    }
}
