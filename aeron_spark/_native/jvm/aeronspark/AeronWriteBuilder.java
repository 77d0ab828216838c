package aeronspark;

import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsTruncate;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.connector.write.streaming.StreamingDataWriterFactory;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;

/** The Python source's write, whose tasks give Python blocks of rows ({@link Blocks}). All else of a write is Python's. */
final class AeronWriteBuilder implements WriteBuilder, SupportsTruncate {
    private static final EngineLog LOG = new EngineLog();

    private final WriteBuilder python;
    private final boolean isText;

    private AeronWriteBuilder(WriteBuilder python, boolean isText) {
        this.python = python;
        this.isText = isText;
    }

    /** For rows that the JVM gathers; else Python's own. Throws where nothing but the JVM may write, and it cannot. */
    static WriteBuilder of(SupportsWrite table, LogicalWriteInfo info) {
        String engine = info.options().getOrDefault("engine", "auto").strip();
        String lack = "python".equalsIgnoreCase(engine) ? "engine=python" : BlockInfo.lackOf(info);
        if (lack == null) {
            LOG.info("sink with engine=jvm: it gathers the rows, and Python publishes them");
            return new AeronWriteBuilder(table.newWriteBuilder(new BlockInfo(info)), BlockInfo.isText(info));
        }
        if ("jvm".equalsIgnoreCase(engine)) {
            throw AeronException.ofWrite("engine=jvm cannot write with " + lack + ": leave engine out, which then takes "
                + "Python, or write one column value, binary or string, with payload=value");
        }
        LOG.info("sink with engine=python: the JVM's engine does not write with " + lack);
        return table.newWriteBuilder(info);
    }

    @Override
    public WriteBuilder truncate() {
        return new AeronWriteBuilder(((SupportsTruncate) python).truncate(), isText);
    }

    @Override
    public Write build() {
        return new Whole(python.build(), isText);
    }

    private record Whole(Write python, boolean isText) implements Write {
        @Override
        public String description() {
            return python.description();
        }

        @Override
        public BatchWrite toBatch() {
            return new OfBatch(python.toBatch(), isText);
        }

        @Override
        public StreamingWrite toStreaming() {
            return new OfStream(python.toStreaming(), isText);
        }

        @Override
        public CustomMetric[] supportedCustomMetrics() {
            return python.supportedCustomMetrics();
        }

        @Override
        public CustomTaskMetric[] reportDriverMetrics() {
            return python.reportDriverMetrics();
        }

        /** In Spark's plans. */
        @Override
        public String toString() {
            return python + " engine=jvm";
        }
    }

    private record OfBatch(BatchWrite python, boolean isText) implements BatchWrite {
        @Override
        public DataWriterFactory createBatchWriterFactory(PhysicalWriteInfo info) {
            return new AeronWriterFactory(python.createBatchWriterFactory(info), null, isText);
        }

        @Override
        public boolean useCommitCoordinator() {
            return python.useCommitCoordinator();
        }

        @Override
        public void onDataWriterCommit(WriterCommitMessage message) {
            python.onDataWriterCommit(message);
        }

        @Override
        public void commit(WriterCommitMessage[] messages) {
            python.commit(messages);
        }

        @Override
        public void abort(WriterCommitMessage[] messages) {
            python.abort(messages);
        }
    }

    private record OfStream(StreamingWrite python, boolean isText) implements StreamingWrite {
        @Override
        public StreamingDataWriterFactory createStreamingWriterFactory(PhysicalWriteInfo info) {
            return new AeronWriterFactory(null, python.createStreamingWriterFactory(info), isText);
        }

        @Override
        public boolean useCommitCoordinator() {
            return python.useCommitCoordinator();
        }

        @Override
        public void commit(long epoch, WriterCommitMessage[] messages) {
            python.commit(epoch, messages);
        }

        @Override
        public void abort(long epoch, WriterCommitMessage[] messages) {
            python.abort(epoch, messages);
        }
    }
}
