package aeronspark;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.streaming.StreamingDataWriterFactory;

/** Makes the writers of tasks, for a batch or for a stream; the other one is null. */
record AeronWriterFactory(DataWriterFactory batch, StreamingDataWriterFactory stream, boolean isText)
    implements DataWriterFactory, StreamingDataWriterFactory {
    @Override
    public DataWriter<InternalRow> createWriter(int partition, long task) {
        return new AeronWriter(batch.createWriter(partition, task), isText);
    }

    @Override
    public DataWriter<InternalRow> createWriter(int partition, long task, long epoch) {
        return new AeronWriter(stream.createWriter(partition, task, epoch), isText);
    }
}
