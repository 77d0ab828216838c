package aeronspark;

import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A stream: Python plans its micro-batches. */
final class AeronStreamScan implements Scan {
    private final Scan python;
    private final CaseInsensitiveStringMap options;

    AeronStreamScan(Scan python, CaseInsensitiveStringMap options) {
        this.python = python;
        this.options = options;
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
                ? new AeronLimitedRealTimeStream(planning, readSchema(), options)
                : new AeronRealTimeStream(planning, readSchema(), options);
        }
        return isLimited
            ? new AeronLimitedStream(planning, readSchema(), options)
            : new AeronStream(planning, readSchema(), options);
    }
}
