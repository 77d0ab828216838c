package aeronspark;

import java.util.Map;
import java.util.Optional;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.ReportsSourceMetrics;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;
import org.apache.spark.sql.types.StructType;

/** A stream whose micro-batches Spark limits, and whose newest offset it asks for beside their ends. */
class AeronLimitedStream extends AeronStream implements SupportsTriggerAvailableNow, ReportsSourceMetrics {
    private final SupportsTriggerAvailableNow python;
    private final Lag lag;

    AeronLimitedStream(MicroBatchStream python, StructType schema) {
        super(python, schema);
        this.python = (SupportsTriggerAvailableNow) python;
        lag = new Lag(python);
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
        return lag.upTo(python.reportLatestOffset());
    }

    @Override
    public Map<String, String> metrics(Optional<Offset> consumed) {
        return lag.of(consumed.orElse(null));
    }

    @Override
    public void prepareForTriggerAvailableNow() {
        python.prepareForTriggerAvailableNow();
    }
}
