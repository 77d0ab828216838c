package aeronspark;

import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A stream whose micro-batches Spark limits. */
class AeronLimitedStream extends AeronStream implements SupportsTriggerAvailableNow {
    private final SupportsTriggerAvailableNow python;

    AeronLimitedStream(MicroBatchStream python, StructType schema, CaseInsensitiveStringMap options) {
        super(python, schema, options);
        this.python = (SupportsTriggerAvailableNow) python;
    }

    @Override
    public ReadLimit getDefaultReadLimit() {
        return python.getDefaultReadLimit();
    }

    @Override
    public Offset latestOffset(Offset start, ReadLimit limit) {
        return python.latestOffset(start, limit);
    }

    @Override
    public Offset reportLatestOffset() {
        return python.reportLatestOffset();
    }

    @Override
    public void prepareForTriggerAvailableNow() {
        python.prepareForTriggerAvailableNow();
    }
}
