package aeronspark;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Iterator;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.execution.vectorized.ConstantColumnVector;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.unsafe.types.UTF8String;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reads a partition's ranges, one after the other, into columns of C. A batch holds until the next one is asked for.
 *
 * <p>As range_reader.py where nothing may be skipped; texts of errors are the same.
 */
final class AeronReader implements PartitionReader<ColumnarBatch> {
    private static final Logger LOG = LoggerFactory.getLogger("aeron");
    private static final int FRAME_ALIGNMENT = 32;
    /** The largest message: a batch of this many bytes holds any. */
    private static final long MAX_MESSAGE_LENGTH = 16 << 20;

    private final JsonNode job;
    private final Iterator<JsonNode> ranges;
    private final StructType schema;
    private long folder;
    private long rows;
    private Recording recording;
    private ColumnarBatch batch;
    /** Where the batch begins, and the range ends. */
    private long given;
    private long end;
    private long bytesRead;
    private long messagesRead;

    AeronReader(Planned partition, StructType schema) {
        this(partition, partition.ranges().elements(), schema);
    }

    /** @param ranges may have more after they had none */
    AeronReader(Planned partition, Iterator<JsonNode> ranges, StructType schema) {
        this.job = partition.job();
        this.ranges = ranges;
        this.schema = schema;
    }

    /** The facts of a recording that reading needs. */
    private record Recording(long id, long start, long termLength, long segmentLength, byte[] channel, byte[] source) {
        static Recording of(long folder, long id) {
            long[] numbers = new long[4];
            byte[][] texts = new byte[2][];
            Native.checked(Native.recording(folder, id, numbers, texts));
            return new Recording(id, numbers[0], numbers[1], numbers[2], texts[0], texts[1]);
        }

        long segmentBase(long position) {
            long first = start - start % termLength;
            return first + Math.floorDiv(position - first, segmentLength) * segmentLength;
        }

        String segmentFile(long position) {
            return id + "-" + Math.max(segmentBase(position), 0) + ".rec";
        }
    }

    @Override
    public boolean next() {
        for (;;) {
            while (rows == 0) { // an empty range opens nothing
                if (!ranges.hasNext()) {
                    return false;
                }
                openNext();
            }
            int count = fill();
            long position = Math.min(Native.position(rows), end);
            bytesRead += position - given;
            messagesRead += count;
            given = position;
            if (count > 0) {
                batch.setNumRows(count);
                return true;
            }
            closeRows();
        }
    }

    @Override
    public ColumnarBatch get() {
        return batch;
    }

    @Override
    public void close() {
        closeRows();
        if (folder != 0) {
            Native.closeFolder(folder);
            folder = 0;
        }
    }

    @Override
    public CustomTaskMetric[] currentMetricsValues() {
        return Metrics.of(bytesRead, messagesRead);
    }

    private int fill() {
        int count = Native.next(rows);
        // Before another call replaces the text.
        AeronException failure = count < 0 ? Native.failure(count) : null;
        for (byte[] doubt = Native.doubt(rows); doubt != null; doubt = Native.doubt(rows)) {
            report(new String(doubt, StandardCharsets.UTF_8));
        }
        if (failure != null) {
            throw explained(failure, Math.max(given, Native.position(rows)));
        }
        return count;
    }

    /** Something seems damaged and may be valid. */
    private void report(String doubt) {
        String text = job.get("path").asText() + ": " + doubt + "; check it with aeron-spark archive verify";
        if (job.get("isStrict").asBoolean()) {
            throw AeronException.dataLoss(text + "; onCorruption=fail goes on with a warning");
        }
        LOG.warn(text);
    }

    /** A failure, or that the segment is missing at which it stopped. Behind a segment's last message only padding may stand. */
    private AeronException explained(AeronException failure, long position) {
        if (!failure.is(AeronException.DATA)) {
            return failure;
        }
        long nextTerm = position - position % recording.termLength + recording.termLength;
        for (long at : new long[] {position, nextTerm}) {
            String name = recording.segmentFile(at);
            if (failure.text().contains(name) && !Files.exists(Path.of(job.get("path").asText(), name))) {
                return lost("recording " + recording.id + ": position " + at + " is wanted: " + failure.text());
            }
        }
        return failure;
    }

    static AeronException lost(String text) {
        return AeronException.dataLoss(text + "; failOnDataLoss=false goes on without");
    }

    private void openNext() {
        JsonNode range = ranges.next();
        open(range.get(0).asLong(), range.get(1).asLong(), range.get(2).asLong(), range.get(3).asLong());
    }

    /** Opens it at the first use. */
    long folder() {
        if (folder == 0) {
            Native.load();
            String aeronDir = job.get("aeronDir").asText();
            folder = Native.checked(Native.openFolder(Native.bytes(job.get("path").asText()),
                aeronDir.isEmpty() ? null : Native.bytes(aeronDir), job.get("checksum").asInt()));
        }
        return folder;
    }

    private void open(long id, long start, long end, long limit) {
        recording = Recording.of(folder(), id);
        checkStillThere(start, end);
        if (start >= end) {
            return;
        }
        given = start;
        this.end = end;
        long largest = Math.min(recording.termLength / 8, MAX_MESSAGE_LENGTH);
        long span = Math.min(limit, end + largest) - start;
        // A row has a frame of its own, so a range of n bytes holds no more than n / 32.
        long rowCapacity = Math.min(job.get("rows").asLong(), Math.floorDiv(span, FRAME_ALIGNMENT) + 1);
        long byteCapacity = Math.min(Math.max(job.get("bytes").asLong(), largest), span);
        if (Math.min(rowCapacity, byteCapacity) < 1 || Math.max(rowCapacity, byteCapacity) > Integer.MAX_VALUE) {
            throw new AeronException(AeronException.USAGE,
                "capacities of " + rowCapacity + " rows and " + byteCapacity + " bytes must be in 1.." + Integer.MAX_VALUE);
        }
        long opened = Native.openRows(folder, id, start, end, limit, mask(), (int) rowCapacity, (int) byteCapacity,
            job.get("reservedUnitNs").asLong());
        if (opened < 0) {
            throw explained(Native.failure(opened), start);
        }
        rows = opened;
        ColumnVector[] columns = new ColumnVector[schema.length()];
        for (int at = 0; at < columns.length; at++) {
            columns[at] = column(schema.apply(at), (int) rowCapacity);
        }
        batch = new ColumnarBatch(columns);
    }

    private void checkStillThere(long start, long end) {
        long[] extent = new long[2];
        int result = Native.extent(folder, recording.id, extent);
        if (result == AeronException.PEER) {
            return; // the planning machine saw the live archive's counters and this one does not: trust the plan
        }
        Native.checked(result);
        if (extent[0] > start || end > extent[1]) {
            throw lost("recording " + recording.id + ": [" + start + ", " + end + ") was planned to be read from "
                + Path.of(job.get("path").asText(), recording.segmentFile(start)) + " on, but now [" + extent[0] + ", " + extent[1]
                + ") is there: it was purged or truncated meanwhile");
        }
    }

    /** Columns that C shall fill. */
    private int mask() {
        int mask = 0;
        for (StructField field : schema.fields()) {
            mask |= switch (field.name()) {
                case "position" -> 1 << Native.POSITION;
                case "next_position" -> 1 << Native.NEXT_POSITION;
                case "reserved_value" -> 1 << Native.RESERVED_VALUE;
                case "session_id" -> 1 << Native.SESSION_ID;
                case "stream_id" -> 1 << Native.STREAM_ID;
                case "term_id" -> 1 << Native.TERM_ID;
                case "term_offset" -> 1 << Native.TERM_OFFSET;
                case "flags" -> 1 << Native.FLAGS;
                case "value" -> 1 << Native.VALUE_OFFSET | 1 << Native.VALUE;
                case "timestamp", "timestamp_ns" -> 1 << Native.TIME_NS | 1 << Native.TIME_US | 1 << Native.TIME_IS_NULL;
                default -> 0;
            };
        }
        return mask;
    }

    private ColumnVector column(StructField field, int rowCapacity) {
        return switch (field.name()) {
            case "position" -> filled(field, Native.POSITION);
            case "next_position" -> filled(field, Native.NEXT_POSITION);
            case "reserved_value" -> filled(field, Native.RESERVED_VALUE);
            case "session_id" -> filled(field, Native.SESSION_ID);
            case "stream_id" -> filled(field, Native.STREAM_ID);
            case "term_id" -> filled(field, Native.TERM_ID);
            case "term_offset" -> filled(field, Native.TERM_OFFSET);
            case "flags" -> filled(field, Native.FLAGS);
            case "value" -> new OffHeapColumn(field.dataType(), Native.address(rows, Native.VALUE),
                Native.address(rows, Native.VALUE_OFFSET), 0);
            case "timestamp" -> new OffHeapColumn(field.dataType(), Native.address(rows, Native.TIME_US), 0,
                Native.address(rows, Native.TIME_IS_NULL));
            case "timestamp_ns" -> new OffHeapColumn(field.dataType(), Native.address(rows, Native.TIME_NS), 0,
                Native.address(rows, Native.TIME_IS_NULL));
            case "recording_id" -> {
                ConstantColumnVector same = new ConstantColumnVector(rowCapacity, field.dataType());
                same.setLong(recording.id);
                yield same;
            }
            case "channel" -> text(field, recording.channel, rowCapacity);
            case "source_identity" -> text(field, recording.source, rowCapacity);
            default -> throw new IllegalStateException("column " + field.name() + " is not of this version: " + Version.ADVICE);
        };
    }

    private OffHeapColumn filled(StructField field, int column) {
        return new OffHeapColumn(field.dataType(), Native.address(rows, column), 0, 0);
    }

    private static ColumnVector text(StructField field, byte[] bytes, int rowCapacity) {
        ConstantColumnVector same = new ConstantColumnVector(rowCapacity, field.dataType());
        same.setUtf8String(UTF8String.fromString(new String(bytes, StandardCharsets.UTF_8)));
        return same;
    }

    private void closeRows() {
        if (rows != 0) {
            Native.closeRows(rows);
            rows = 0;
        }
    }
}
