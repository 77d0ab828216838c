package aeronspark;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.io.Serializable;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.execution.datasources.DataSource;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** Readers of the bytes of ranges, which Python fetches where only Python reaches them (reading/windows.py). */
final class Fetching implements Serializable {
    private static final long serialVersionUID = 1;
    /** By these columns Python knows that bytes are asked for. */
    private static final StructType COLUMNS =
        new StructType().add("aeron_window", DataTypes.StringType).add("aeron_bytes", DataTypes.BinaryType);

    private final PartitionReaderFactory python;
    /** Of the scan that the factory belongs to. */
    private final InputPartition like;

    /** @param options of the query that is planned */
    Fetching(CaseInsensitiveStringMap options) {
        TableProvider provider = DataSource.lookupDataSourceV2("aeron", SparkSession.active().sessionState().conf()).get();
        Table table = provider.getTable(COLUMNS, new Transform[0], options.asCaseSensitiveMap());
        Batch batch = ((SupportsRead) table).newScanBuilder(options).build().toBatch();
        like = batch.planInputPartitions()[0];
        python = batch.createReaderFactory();
    }

    Windows open(Planned partition) {
        return new Windows(python.createReader(partition.handedOver(like)));
    }

    /** Each is a piece of a segment, as C reads it, until the next one is asked for. */
    static final class Windows implements AutoCloseable {
        private final PartitionReader<InternalRow> chunks;
        private JsonNode facts;
        private long handle;

        private Windows(PartitionReader<InternalRow> chunks) {
            this.chunks = chunks;
        }

        boolean next() throws IOException {
            release();
            if (!chunks.next()) {
                return false;
            }
            InternalRow chunk = chunks.get(); // which takes the next row at each call
            facts = Planned.parse(chunk.getUTF8String(0).toString());
            long[] numbers = {fact("length"), fact("position"), fact("checksum"), fact("recordingId"), fact("startPosition"),
                fact("stopPosition"), fact("initialTermId"), fact("segmentLength"), fact("termLength"), fact("mtuLength"),
                fact("sessionId"), fact("streamId")};
            Native.load();
            handle = Native.checked(Native.openWindow(Native.bytes(text("path")), numbers));
            long filled = Native.fillWindow(handle, 0, chunk.getBinary(1));
            while (filled < fact("length")) {
                if (!chunks.next()) {
                    throw new IllegalStateException("Python gave " + filled + " of " + fact("length") + " bytes of " + facts);
                }
                filled += Native.fillWindow(handle, filled, chunks.get().getBinary(1));
            }
            return true;
        }

        long fact(String name) {
            return facts.get(name).asLong();
        }

        String text(String name) {
            return facts.get(name).asText();
        }

        long handle() {
            return handle;
        }

        @Override
        public void close() throws IOException {
            release();
            chunks.close();
        }

        private void release() {
            if (handle != 0) {
                Native.closeWindow(handle);
                handle = 0;
            }
        }
    }
}
