package aeronspark;

import java.io.IOException;
import java.util.Iterator;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.internal.SQLConf$;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction0;
import scala.runtime.BoxedUnit;

/** A task's writer of the Python source, which gets blocks. */
final class AeronWriter implements DataWriter<InternalRow> {
    private final DataWriter<InternalRow> python;
    private final boolean isText;

    AeronWriter(DataWriter<InternalRow> python, boolean isText) {
        this.python = python;
        this.isText = isText;
    }

    /** Each block at once: a block is a row for Spark, which else gathers thousands before the worker gets one. */
    @Override
    public void writeAll(Iterator<InternalRow> rows) throws IOException {
        SQLConf conf = new SQLConf(); // the task's own cannot be changed
        CollectionConverters.asJava(SQLConf.get().getAllConfs()).forEach(conf::setConfString);
        conf.setConfString("spark.sql.execution.arrow.maxRecordsPerBatch", "1");
        conf.setConfString("spark.sql.execution.pandas.udf.buffer.size", Integer.toString(Blocks.SENT_BYTES));
        // Else the row that names the socket is shorter than the buffer, and waits there.
        conf.setConfString("spark.sql.execution.arrow.compression.codec", "none");
        SQLConf$.MODULE$.withExistingConf(conf, new AbstractFunction0<BoxedUnit>() {
            @Override
            public BoxedUnit apply() {
                try (Blocks blocks = new Blocks(rows, isText)) {
                    python.writeAll(blocks);
                } catch (IOException error) {
                    AeronWriter.<RuntimeException>raise(error); // as it is: functions of Scala declare none
                }
                return BoxedUnit.UNIT;
            }
        });
    }

    @SuppressWarnings("unchecked")
    private static <E extends Exception> void raise(Exception error) throws E {
        throw (E) error;
    }

    @Override
    public void write(InternalRow row) throws IOException {
        python.write(row);
    }

    @Override
    public WriterCommitMessage commit() throws IOException {
        return python.commit();
    }

    @Override
    public void abort() throws IOException {
        python.abort();
    }

    @Override
    public void close() throws IOException {
        python.close();
    }

    @Override
    public CustomTaskMetric[] currentMetricsValues() {
        return python.currentMetricsValues();
    }
}
