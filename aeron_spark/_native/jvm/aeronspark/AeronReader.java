package aeronspark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import java.io.IOException;
import java.lang.ref.Cleaner;
import java.nio.charset.StandardCharsets;
import java.util.Iterator;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.execution.vectorized.ConstantColumnVector;
import org.apache.spark.sql.types.DataTypes;
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
 * <p>As range_reader.py where nothing may be skipped; texts of errors are the same. Where options say what becomes of bytes or messages
 * that are not as they should be, Python's reader does that: it gets the part of the range from the last batch on.
 *
 * <p>Where Spark feeds a script, a thread of its own reads, and the task may end and close the reader meanwhile. Who has got a batch can
 * read all of it: each column holds this reader, whose memory then stays ({@link KeptMemory}).
 */
final class AeronReader implements PartitionReader<ColumnarBatch> {
    private static final Logger LOG = LoggerFactory.getLogger("aeron");
    private static final int FRAME_ALIGNMENT = 32;
    private static final int VALUES = 1 << Native.VALUE_OFFSET | 1 << Native.VALUE;
    /** The largest message: a batch of this many bytes holds any. */
    private static final long MAX_MESSAGE_LENGTH = 16 << 20;
    /** Memory for a byte of a recording, at most in columns of C, and about where messages are decoded from them. */
    private static final int COLUMN_BYTES = 2;
    private static final int DECODED_BYTES = 6;

    private final Planned partition;
    private final JsonNode job;
    private final boolean handsOver;
    private final boolean isFollowing;
    private final Iterator<JsonNode> ranges;
    private final StructType schema;
    private final long rowLimit;
    private final AeronReaderFactory factory;
    private long folder;
    private long rows;
    /** Some thread may read columns of C. */
    private boolean isRead;
    private boolean isClosed;
    private Cleaner.Cleanable kept;
    private Recording recording;
    private ColumnarBatch batch;
    /** Decodes messages; null where they are columns as they are. */
    private SbeColumns sbe;
    private boolean isTold;
    /** What Python reads now; null where the JVM does. */
    private volatile PythonColumns python;
    /** Where the batch begins, and the range ends. */
    private long given;
    private long end;
    private long limit;
    private int rowCapacity;
    private long messages;
    /** Of recordings. */
    private long largestBatch;
    private long bytesRead;
    private long messagesRead;
    private long bytesHandedOver;

    /**
     * @param rowLimit rows after which nobody wants more
     * @param factory for what the JVM does not read
     */
    AeronReader(Planned partition, StructType schema, long rowLimit, AeronReaderFactory factory) {
        this.partition = partition;
        this.job = partition.job();
        this.handsOver = job.get("handsOver").asBoolean();
        this.isFollowing = false;
        this.ranges = partition.ranges().elements();
        this.schema = schema;
        this.rowLimit = rowLimit;
        this.factory = factory;
        this.sbe = factory.openSbe();
    }

    /** For messages as they are, of which none is left to Python. @param ranges may have more after they had none */
    AeronReader(Planned partition, Iterator<JsonNode> ranges, StructType schema) {
        this.partition = partition;
        this.job = partition.job();
        this.handsOver = false;
        this.isFollowing = true;
        this.ranges = ranges;
        this.schema = schema;
        this.rowLimit = Long.MAX_VALUE;
        this.factory = null;
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
    public boolean next() throws IOException {
        int count = 0;
        while (count == 0) {
            PythonColumns left = messagesRead < rowLimit ? python : null;
            count = left == null ? nextOfRanges() : nextOfPython(left);
        }
        messagesRead += Math.max(count, 0);
        return count > 0;
    }

    /** While close() may go on: it ends this wait for a worker. */
    private int nextOfPython(PythonColumns left) throws IOException {
        int count = left.next();
        batch = left.batch();
        if (count == 0) {
            closePython();
        }
        return count;
    }

    /** Rows of the next batch; 0 when a range is closed, or Python takes over; less at the end. */
    private synchronized int nextOfRanges() throws IOException {
        checkIsOpen();
        isRead = false;
        if (messagesRead >= rowLimit || rows == 0 && !openNext()) {
            return -1;
        }
        int count = rows == 0 ? 0 : nextOfRange();
        isRead = count > 0;
        return count;
    }

    /** Rows of the next batch of the open range; 0 when it is closed, or Python takes over. */
    private int nextOfRange() {
        int count;
        try {
            count = fill();
        } catch (AeronException failure) {
            handOverRest(failure);
            return 0;
        }
        long position = Math.min(Native.position(rows), end);
        boolean isLast = count == 0;
        if (count > 0 && sbe != null) {
            count = sbe.decode(rows);
        }
        if (count == Native.NOT_PLAIN) {
            handOverBatch(position);
            return 0;
        }
        Native.checked(count);
        bytesRead += position - given;
        largestBatch = Math.max(largestBatch, position - given);
        given = position;
        if (isLast) {
            closeRows();
        } else if (count > 0) {
            if (sbe != null) {
                makeBatch();
            }
            batch.setNumRows(count);
        }
        return count;
    }

    /** Leaves a batch to Python in which some message or value is not as it should be. */
    private void handOverBatch(long position) {
        if (!isTold) {
            isTold = true;
            LOG.warn("{}: Python reads a batch of recording {}, [{}, {}), as not all of it is a whole message, or a value, of payload={}",
                job.get("path").asText(), recording.id, given, position, job.get("payload").asText());
        }
        ArrayNode part = JsonNodeFactory.instance.arrayNode();
        part.addArray().add(recording.id).add(given).add(position).add(limit);
        bytesHandedOver += position - given;
        given = position;
        handOver(part);
    }

    /** Leaves what is left of this task to Python, where options say what becomes of missing or damaged bytes. */
    private void handOverRest(AeronException failure) {
        if (!handsOver || !failure.is(AeronException.DATA)) {
            throw failure;
        }
        closeRows();
        ArrayNode rest = JsonNodeFactory.instance.arrayNode();
        rest.addArray().add(recording.id).add(given).add(end).add(limit);
        bytesHandedOver += end - given;
        while (ranges.hasNext()) {
            JsonNode range = ranges.next();
            bytesHandedOver += range.get(2).asLong() - range.get(1).asLong();
            rest.add(range);
        }
        LOG.warn(job.get("path").asText() + ": Python reads the rest of this task, " + bytesHandedOver + " bytes: " + failure.text());
        handOver(rest);
    }

    private void handOver(ArrayNode part) {
        python = factory.readInPython(partition.handedOver(part), job.get("bytes").asLong());
    }

    @Override
    public ColumnarBatch get() {
        return batch;
    }

    @Override
    public synchronized void close() throws IOException {
        if (!isClosed) {
            isClosed = true;
            if (rows != 0) {
                Native.endRows(rows);
            }
            if (folder != 0) {
                Native.closeFolder(folder);
            }
            Runnable free = freeing(rows, sbe);
            if (isRead) {
                kept = KeptMemory.keep(this, largestBatch * (sbe == null ? COLUMN_BYTES : DECODED_BYTES), free);
            } else {
                free.run();
            }
        }
        closePython();
    }

    /** It holds no reference to the reader. */
    private static Runnable freeing(long rows, SbeColumns sbe) {
        return () -> {
            if (rows != 0) {
                Native.closeRows(rows);
            }
            if (sbe != null) {
                sbe.close();
            }
        };
    }

    /** Who asks for more reads no earlier batch. */
    private void checkIsOpen() throws IOException {
        if (isClosed) {
            if (kept != null) {
                kept.clean();
            }
            throw new IOException("the task has ended, and its reader gives no more rows");
        }
    }

    private synchronized void closePython() throws IOException {
        if (python != null) {
            python.close();
            python = null;
        }
    }

    @Override
    public CustomTaskMetric[] currentMetricsValues() {
        return Metrics.of(bytesRead, messagesRead, bytesHandedOver);
    }

    private int fill() {
        int count = Native.next(rows);
        // Before another call replaces the text.
        AeronException failure = count < 0 && count != Native.NOT_PLAIN ? Native.failure(count) : null;
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
            if (failure.text().contains(name) && !Native.exists(Native.bytes(pathOf(name)))) {
                return lost("recording " + recording.id + ": position " + at + " is wanted: " + failure.text());
            }
        }
        return failure;
    }

    /** A text, as Java has no path where its locale lacks a letter of one. */
    private String pathOf(String name) {
        String path = job.get("path").asText();
        return path.endsWith("/") ? path + name : path + "/" + name;
    }

    static AeronException lost(String text) {
        return AeronException.dataLoss(text + "; failOnDataLoss=false goes on without");
    }

    private boolean openNext() throws IOException {
        if (!ranges.hasNext()) {
            return false;
        }
        JsonNode range = ranges.next();
        given = range.get(1).asLong();
        end = range.get(2).asLong();
        limit = range.get(3).asLong();
        recording = Recording.of(folder(), range.get(0).asLong());
        try {
            checkStillThere();
            if (given < end) { // an empty range opens nothing
                open();
            }
        } catch (AeronException failure) {
            handOverRest(failure);
        }
        return true;
    }

    /** Opens it at the first use. It stays open while this reader is locked. */
    synchronized long folder() throws IOException {
        checkIsOpen();
        if (folder == 0) {
            Native.load();
            String aeronDir = job.get("aeronDir").asText();
            folder = Native.checked(Native.openFolder(Native.bytes(job.get("path").asText()),
                aeronDir.isEmpty() ? null : Native.bytes(aeronDir), job.get("checksum").asInt(), isFollowing));
        }
        return folder;
    }

    private void open() {
        long largest = Math.min(recording.termLength / 8, MAX_MESSAGE_LENGTH);
        long span = Math.min(limit, end + largest) - given;
        // A row has a frame of its own, so a range of n bytes holds no more than n / 32.
        // A limit counts rows, and of decoded messages few may be one.
        long most = Math.max(sbe == null ? Math.min(job.get("rows").asLong(), rowLimit) : job.get("rows").asLong(), 1);
        long rowCapacity = Math.min(most, Math.floorDiv(span, FRAME_ALIGNMENT) + 1);
        long byteCapacity = Math.min(job.get("bytes").asLong(), span);
        long valueCapacity = Math.min(Math.max(job.get("bytes").asLong(), largest), span);
        if (Math.min(rowCapacity, byteCapacity) < 1 || Math.max(rowCapacity, valueCapacity) > Integer.MAX_VALUE) {
            throw new AeronException(AeronException.USAGE,
                "capacities of " + rowCapacity + " rows and " + valueCapacity + " bytes must be in 1.." + Integer.MAX_VALUE);
        }
        long opened = Native.openRows(folder, recording.id, given, end, limit, mask(), (int) rowCapacity, (int) byteCapacity,
            (int) valueCapacity, job.get("reservedUnitNs").asLong(), "string".equals(job.get("payload").asText()));
        if (opened < 0) {
            throw explained(Native.failure(opened), given);
        }
        rows = opened;
        this.rowCapacity = (int) rowCapacity;
        if (sbe == null) {
            makeBatch();
        }
    }

    /** The columns of C, where they lie now: those of decoded messages lie elsewhere in each batch. */
    private void makeBatch() {
        messages = sbe == null ? 0 : sbe.messages();
        ColumnVector[] columns = new ColumnVector[schema.length()];
        for (int at = 0; at < columns.length; at++) {
            columns[at] = column(schema.apply(at));
        }
        batch = new ColumnarBatch(columns);
    }

    private void checkStillThere() {
        long[] extent = new long[2];
        int result = Native.extent(folder, recording.id, extent);
        if (result == AeronException.PEER) {
            // The planning machine saw the live archive's counters, which are not read here: trust the plan.
            extent[0] = recording.start;
            extent[1] = limit;
        } else {
            Native.checked(result);
        }
        if (extent[0] > given || end > extent[1]) {
            throw lost("recording " + recording.id + ": [" + given + ", " + end + ") was planned to be read from "
                + pathOf(recording.segmentFile(given)) + " on, but now [" + extent[0] + ", " + extent[1]
                + ") is there: it was purged or truncated meanwhile (a plan that Spark has kept reads the same again: load anew)");
        }
    }

    /** Whether rows have times of the index. */
    boolean hasTimesOfIndex() {
        return (mask() & 1 << Native.TIME_NS) != 0 && job.get("reservedUnitNs").asLong() == 0;
    }

    /** Columns that C shall fill. */
    private int mask() {
        int mask = sbe == null ? 0 : VALUES;
        for (StructField field : schema.fields()) {
            mask |= sbe != null && sbe.has(field.name()) ? 0 : switch (field.name()) {
                case "position" -> 1 << Native.POSITION;
                case "next_position" -> 1 << Native.NEXT_POSITION;
                case "reserved_value" -> 1 << Native.RESERVED_VALUE;
                case "session_id" -> 1 << Native.SESSION_ID;
                case "stream_id" -> 1 << Native.STREAM_ID;
                case "term_id" -> 1 << Native.TERM_ID;
                case "term_offset" -> 1 << Native.TERM_OFFSET;
                case "flags" -> 1 << Native.FLAGS;
                case "value" -> canHaveGaps(field) ? VALUES | 1 << Native.VALUE_END : VALUES;
                case "timestamp", "timestamp_ns" -> 1 << Native.TIME_NS | 1 << Native.TIME_US | 1 << Native.TIME_IS_NULL;
                default -> 0;
            };
        }
        return mask;
    }

    private ColumnVector column(StructField field) {
        if (sbe != null && sbe.has(field.name())) {
            return sbe.column(field, this);
        }
        return switch (field.name()) {
            case "position" -> filled(field, Native.POSITION);
            case "next_position" -> filled(field, Native.NEXT_POSITION);
            case "reserved_value" -> filled(field, Native.RESERVED_VALUE);
            case "session_id" -> filled(field, Native.SESSION_ID);
            case "stream_id" -> filled(field, Native.STREAM_ID);
            case "term_id" -> filled(field, Native.TERM_ID);
            case "term_offset" -> filled(field, Native.TERM_OFFSET);
            case "flags" -> filled(field, Native.FLAGS);
            case "value" -> value(field);
            case "timestamp" -> new OffHeapColumn(field.dataType(), Native.address(rows, Native.TIME_US), 0, 0,
                Native.address(rows, Native.TIME_IS_NULL), messages, this);
            case "timestamp_ns" -> new OffHeapColumn(field.dataType(), Native.address(rows, Native.TIME_NS), 0, 0,
                Native.address(rows, Native.TIME_IS_NULL), messages, this);
            case "recording_id" -> {
                ConstantColumnVector same = new ConstantColumnVector(rowCapacity, field.dataType());
                same.setLong(recording.id);
                yield same;
            }
            case "channel" -> text(field, recording.channel);
            case "source_identity" -> text(field, recording.source);
            // Of messages that cannot be decoded, which are Python's.
            case "sbe_error", "sbe_error_at", "sbe_raw" -> {
                ConstantColumnVector none = new ConstantColumnVector(rowCapacity, field.dataType());
                none.setNull();
                yield none;
            }
            default -> throw new IllegalStateException("column " + field.name() + " is not of this version: " + Version.ADVICE);
        };
    }

    /** Values that nobody but Spark reads lie where C has read them, headers between them: they are not copied. */
    private boolean canHaveGaps(StructField value) {
        return sbe == null && DataTypes.BinaryType.equals(value.dataType());
    }

    private OffHeapColumn value(StructField field) {
        long offsets = Native.address(rows, Native.VALUE_OFFSET);
        long ends = canHaveGaps(field) ? Native.address(rows, Native.VALUE_END) : offsets + Integer.BYTES;
        return new OffHeapColumn(field.dataType(), Native.address(rows, Native.VALUE), offsets, ends, 0, messages, this);
    }

    private OffHeapColumn filled(StructField field, int column) {
        return new OffHeapColumn(field.dataType(), Native.address(rows, column), 0, 0, 0, messages, this);
    }

    private ColumnVector text(StructField field, byte[] bytes) {
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
