package aeronspark;

import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomSumMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;

/** What a scan shows in Spark's UI. Spark makes the classes by their names. */
final class Metrics {
    private Metrics() {
    }

    static CustomMetric[] all() {
        return new CustomMetric[] {new Bytes(), new Messages(), new HandedOver()};
    }

    static CustomTaskMetric[] of(long bytes, long messages, long handedOver) {
        return new CustomTaskMetric[] {
            new Value(Bytes.NAME, bytes), new Value(Messages.NAME, messages), new Value(HandedOver.NAME, handedOver)};
    }

    /** Bytes of recordings, headers and padding among them. */
    public static final class Bytes extends CustomSumMetric {
        private static final String NAME = "aeronBytes";

        @Override
        public String name() {
            return NAME;
        }

        @Override
        public String description() {
            return "bytes of recordings read";
        }
    }

    /** Messages, before filters. */
    public static final class Messages extends CustomSumMetric {
        private static final String NAME = "aeronMessages";

        @Override
        public String name() {
            return NAME;
        }

        @Override
        public String description() {
            return "messages read";
        }
    }

    /** Bytes that Python's reader has read, as something in them was not as it should be. */
    public static final class HandedOver extends CustomSumMetric {
        private static final String NAME = "aeronHandedOver";

        @Override
        public String name() {
            return NAME;
        }

        @Override
        public String description() {
            return "bytes of recordings left to Python";
        }
    }

    private static final class Value implements CustomTaskMetric {
        private final String name;
        private final long value;

        Value(String name, long value) {
            this.name = name;
            this.value = value;
        }

        @Override
        public String name() {
            return name;
        }

        @Override
        public long value() {
            return value;
        }
    }
}
