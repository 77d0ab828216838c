package aeronspark;

import java.io.IOException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.execution.RowToColumnConverter;
import org.apache.spark.sql.execution.vectorized.OnHeapColumnVector;
import org.apache.spark.sql.execution.vectorized.WritableColumnVector;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** The rows of Python's reader in columns, for what the JVM leaves to it. */
final class PythonColumns implements AutoCloseable {
    private static final int ROWS = 4096;

    private final PartitionReader<InternalRow> rows;
    private final long mostBytes;
    private final RowToColumnConverter converter;
    private final WritableColumnVector[] vectors;
    private final ColumnarBatch batch;

    /**
     * @param all what Python reads; wanted are the columns of it that a batch has
     * @param mostBytes of its rows as Spark has them, nested values included; one row may exceed it
     */
    PythonColumns(PartitionReader<InternalRow> rows, StructType all, StructType wanted, long mostBytes) {
        this.rows = rows;
        this.mostBytes = mostBytes;
        this.converter = new RowToColumnConverter(all);
        this.vectors = OnHeapColumnVector.allocateColumns(ROWS, all);
        ColumnVector[] columns = new ColumnVector[wanted.length()];
        for (int at = 0; at < columns.length; at++) {
            columns[at] = vectors[all.fieldIndex(wanted.apply(at).name())];
        }
        this.batch = new ColumnarBatch(columns);
    }

    /** Fills the batch; 0 rows at the end. */
    int next() throws IOException {
        for (WritableColumnVector vector : vectors) {
            vector.reset();
        }
        int count = 0;
        long bytes = 0;
        while (count < ROWS && bytes < mostBytes && rows.next()) {
            UnsafeRow row = (UnsafeRow) rows.get();
            converter.convert(row, vectors);
            bytes += row.getSizeInBytes();
            count++;
        }
        batch.setNumRows(count);
        return count;
    }

    ColumnarBatch batch() {
        return batch;
    }

    @Override
    public void close() throws IOException {
        rows.close();
    }
}
