package aeronspark;

import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.unsafe.Platform;

/**
 * The ceiling of a source in Spark's JVM: the same vectors again and again, of the columns and in the memory of the engine's.
 * Options: rows, payload (bytes), batch (rows of a batch), partitions.
 */
public final class PrebuiltVectors implements TableProvider {
    private static final StructType SCHEMA = new StructType()
        .add("recording_id", DataTypes.LongType, false)
        .add("session_id", DataTypes.IntegerType, false)
        .add("stream_id", DataTypes.IntegerType, false)
        .add("position", DataTypes.LongType, false)
        .add("next_position", DataTypes.LongType, false)
        .add("reserved_value", DataTypes.LongType, false)
        .add("value", DataTypes.BinaryType, false);

    @Override
    public StructType inferSchema(CaseInsensitiveStringMap options) {
        return SCHEMA;
    }

    @Override
    public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> properties) {
        return new PrebuiltTable();
    }

    /** How many rows a task gives, in batches of so many, with so many bytes each. */
    private record Share(long rows, int batch, int payload) implements InputPartition {
    }

    private static final class PrebuiltTable implements Table, SupportsRead {
        @Override
        public String name() {
            return "prebuilt vectors";
        }

        @Override
        public StructType schema() {
            return SCHEMA;
        }

        @Override
        public Set<TableCapability> capabilities() {
            return Set.of(TableCapability.BATCH_READ);
        }

        @Override
        public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
            int count = options.getInt("partitions", 1);
            Share share = new Share(
                options.getLong("rows", 0) / count, options.getInt("batch", 1), options.getInt("payload", 0));
            return () -> new PrebuiltScan(share, count);
        }
    }

    private record PrebuiltScan(Share share, int count) implements Scan, Batch {
        @Override
        public StructType readSchema() {
            return SCHEMA;
        }

        @Override
        public Batch toBatch() {
            return this;
        }

        @Override
        public InputPartition[] planInputPartitions() {
            InputPartition[] shares = new InputPartition[count];
            java.util.Arrays.fill(shares, share);
            return shares;
        }

        @Override
        public PartitionReaderFactory createReaderFactory() {
            return new Factory();
        }
    }

    private static final class Factory implements PartitionReaderFactory {
        private static final long serialVersionUID = 1;

        @Override
        public PartitionReader<InternalRow> createReader(InputPartition partition) {
            throw new UnsupportedOperationException();
        }

        @Override
        public boolean supportColumnarReads(InputPartition partition) {
            return true;
        }

        @Override
        public PartitionReader<ColumnarBatch> createColumnarReader(InputPartition partition) {
            return new Reader((Share) partition);
        }
    }

    private static final class Reader implements PartitionReader<ColumnarBatch> {
        private final Share share;
        private final ColumnarBatch vectors;
        private final long numbers;
        private final long offsets;
        private final long bytes;
        private long left;
        private int count;

        Reader(Share share) {
            this.share = share;
            left = share.rows();
            int batch = share.batch();
            numbers = Platform.allocateMemory(8L * batch);
            offsets = Platform.allocateMemory(4L * batch + 4);
            bytes = Platform.allocateMemory((long) batch * share.payload());
            for (int row = 0; row < batch; row++) {
                Platform.putLong(null, numbers + 8L * row, row);
            }
            for (int row = 0; row <= batch; row++) {
                Platform.putInt(null, offsets + 4L * row, row * share.payload());
            }
            Platform.setMemory(bytes, (byte) 7, (long) batch * share.payload());
            ColumnVector[] columns = new ColumnVector[SCHEMA.length()];
            for (int at = 0; at < columns.length; at++) {
                StructField field = SCHEMA.apply(at);
                boolean isBytes = field.dataType() == DataTypes.BinaryType;
                columns[at] = new OffHeapColumn(field.dataType(), isBytes ? bytes : numbers, isBytes ? offsets : 0,
                    isBytes ? offsets + Integer.BYTES : 0, 0, 0, null);
            }
            vectors = new ColumnarBatch(columns);
        }

        @Override
        public boolean next() {
            count = (int) Math.min(left, share.batch());
            left -= count;
            vectors.setNumRows(count);
            return count > 0;
        }

        @Override
        public ColumnarBatch get() {
            return vectors;
        }

        @Override
        public void close() {
            Platform.freeMemory(numbers);
            Platform.freeMemory(offsets);
            Platform.freeMemory(bytes);
        }
    }
}
