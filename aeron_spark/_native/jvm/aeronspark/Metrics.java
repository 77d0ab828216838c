package aeronspark;

import java.util.Arrays;
import java.util.Locale;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;

/** What a scan shows in Spark's UI, in the form of Spark's own metrics. Spark makes the classes by their names. */
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

    /** 0 B, 1023 B, 61.0 MiB. */
    static String size(long bytes) {
        String units = "KMGTPE";
        int unit = (Long.SIZE - 1 - Long.numberOfLeadingZeros(Math.max(bytes, 1))) / 10;
        return unit == 0 ? bytes + " B"
            : String.format(Locale.ROOT, "%.1f %siB", Math.scalb((double) bytes, -10 * unit), units.charAt(unit - 1));
    }

    /** Bytes of recordings, headers and padding among them. */
    public static final class Bytes extends Sum {
        private static final String NAME = "aeronBytes";

        public Bytes() {
            super(NAME, "bytes of recordings read");
        }
    }

    /** Messages, before filters. */
    public static final class Messages extends Sum {
        private static final String NAME = "aeronMessages";

        public Messages() {
            super(NAME, "messages read");
        }

        @Override
        String shown(long sum) {
            return String.format(Locale.ROOT, "%,d", sum);
        }
    }

    /** Bytes that Python's reader has read, as something in them was not as it should be. */
    public static final class HandedOver extends Sum {
        private static final String NAME = "aeronHandedOver";

        public HandedOver() {
            super(NAME, "bytes of recordings left to Python");
        }
    }

    /** Of all tasks. */
    private abstract static class Sum implements CustomMetric {
        private final String name;
        private final String description;

        Sum(String name, String description) {
            this.name = name;
            this.description = description;
        }

        @Override
        public String name() {
            return name;
        }

        @Override
        public String description() {
            return description;
        }

        @Override
        public String aggregateTaskMetrics(long[] ofTasks) {
            return shown(Arrays.stream(ofTasks).sum());
        }

        String shown(long sum) {
            return size(sum);
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
