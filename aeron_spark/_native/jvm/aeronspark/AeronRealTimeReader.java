package aeronspark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Iterator;
import java.util.Set;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.streaming.PartitionOffset;
import org.apache.spark.sql.connector.read.streaming.SupportsRealTimeRead;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * Follows the recordings of a partition, row by row, until Spark ends the batch. Each range that the archive has written since the
 * last look is read by an {@link AeronReader}.
 *
 * <p>It ends earlier, without a row, when a recording begins that nobody follows: the next batch's plan has it.
 */
final class AeronRealTimeReader implements SupportsRealTimeRead<InternalRow> {
    private static final String NEXT_POSITION = "next_position";
    private static final long SHORTEST_PAUSE_NS = 1_000_000;
    /** Where nothing came for a while, and where many recordings cost time. */
    private static final long IDLE_PAUSE_NS = 4_000_000;
    private static final long LONGEST_PAUSE_NS = 20_000_000;
    private static final int PAUSES_PER_IDLE_TIME = 50;
    /** A look costs no more than this part of the time. */
    private static final int PAUSES_PER_LOOK = 20;
    private static final long INDEX_SLACK_NS = 10_000_000_000L;
    private static final long CATALOG_INTERVAL_NS = 200_000_000;

    private final AeronReader reader;
    private final ArrayDeque<JsonNode> written = new ArrayDeque<>();
    private final int nextPositionAt;
    private final long[] ids;
    /** How far each recording is handed to the reader, and to Spark. */
    private final long[] taken;
    private final long[] given;
    private final long[] extents;
    private final boolean hasTimesOfIndex;
    /** Of the index: its position and interval now, and by recording, the position behind which entries are missed since when. */
    private final long[] reach = new long[2];
    private final long[] missed;
    private final long[] missedSince;
    private final long newest;
    private final Set<Long> known = new HashSet<>();
    private long[] active = new long[1024];
    private long catalogDue;
    private long lastWritten = System.nanoTime();
    private boolean isEnding;
    /** Of the range that is being read: which recording's, and its end. */
    private int at;
    private long end;
    private ColumnarBatch batch;
    private int row;

    AeronRealTimeReader(Planned partition, StructType schema) {
        boolean hasNextPosition = Arrays.asList(schema.fieldNames()).contains(NEXT_POSITION);
        StructType wanted = hasNextPosition ? schema : schema.add(NEXT_POSITION, DataTypes.LongType);
        nextPositionAt = wanted.fieldIndex(NEXT_POSITION);
        reader = new AeronReader(partition, ranges(), wanted);
        JsonNode ranges = partition.ranges();
        ids = new long[ranges.size()];
        taken = new long[ids.length];
        for (int index = 0; index < ids.length; index++) {
            ids[index] = ranges.get(index).get(0).asLong();
            taken[index] = ranges.get(index).get(1).asLong();
        }
        given = taken.clone();
        extents = new long[2 * ids.length];
        hasTimesOfIndex = reader.hasTimesOfIndex();
        missed = new long[ids.length];
        Arrays.fill(missed, -1);
        missedSince = new long[ids.length];
        newest = partition.job().get("known").get("newest").asLong();
        partition.job().get("known").get("active").forEach(id -> known.add(id.asLong()));
    }

    /** What the archive has written, until there is no more for now. */
    private Iterator<JsonNode> ranges() {
        return new Iterator<JsonNode>() {
            @Override
            public boolean hasNext() {
                return !written.isEmpty();
            }

            @Override
            public JsonNode next() {
                finishRange();
                JsonNode range = written.remove();
                at = range.get(4).asInt();
                end = range.get(2).asLong();
                return range;
            }
        };
    }

    /** As Spark 4.1 calls it. */
    @Override
    public RecordStatus nextWithTimeout(Long timeoutMs) throws IOException {
        return await(timeoutMs);
    }

    @Override
    public RecordStatus nextWithTimeout(Long startMs, Long timeoutMs) throws IOException {
        return await(timeoutMs);
    }

    private RecordStatus await(long timeoutMs) throws IOException {
        if (timeoutMs <= 0) {
            return RecordStatus.newStatusWithoutArrivalTime(false); // Spark 4.1 leaves it to the reader to end in time
        }
        long deadline = System.nanoTime() + timeoutMs * 1_000_000;
        while (!step()) {
            long began = System.nanoTime();
            if (isEnding || began >= deadline) {
                return RecordStatus.newStatusWithoutArrivalTime(false);
            }
            look(began);
            if (!written.isEmpty()) {
                lastWritten = began;
            } else if (!isEnding) {
                long now = System.nanoTime();
                pause(Math.min(pauseAfter(now - began, now - lastWritten), deadline - now));
            }
        }
        return RecordStatus.newStatusWithoutArrivalTime(true);
    }

    private static long pauseAfter(long lookNs, long idleNs) {
        long idle = Math.max(SHORTEST_PAUSE_NS, Math.min(idleNs / PAUSES_PER_IDLE_TIME, IDLE_PAUSE_NS));
        return Math.min(Math.max(lookNs * PAUSES_PER_LOOK, idle), LONGEST_PAUSE_NS);
    }

    /** To the next row of what is written; false where there is none. */
    private boolean step() throws IOException {
        if (batch != null) {
            row++;
            if (row < batch.numRows()) {
                return true;
            }
            given[at] = nextPosition(row - 1);
            batch = null;
        }
        if (reader.next()) {
            batch = reader.get();
            row = 0;
            return true;
        }
        finishRange();
        return false;
    }

    private long nextPosition(int of) {
        return batch.column(nextPositionAt).getLong(of);
    }

    /** Behind the last row of a range only padding is left. */
    private void finishRange() {
        if (end > 0) {
            given[at] = end;
            end = 0;
        }
    }

    /** Finds what the archive has written since, in a folder that is not closed meanwhile. */
    private void look(long now) throws IOException {
        synchronized (reader) {
            lookInto(reader.folder(), now);
        }
    }

    private void lookInto(long folder, long now) {
        if (now >= catalogDue) {
            isEnding = isSomethingNew(folder);
            catalogDue = now + CATALOG_INTERVAL_NS;
        }
        if (ids.length == 0) {
            return;
        }
        Native.checked(Native.extents(folder, ids, extents));
        for (int index = 0; index < ids.length; index++) {
            long start = extents[index];
            long limit = extents[ids.length + index];
            if (start > taken[index] || limit < taken[index]) {
                throw AeronReader.lost("recording " + ids[index] + ": position " + taken[index] + " is wanted, but now [" + start + ", "
                    + limit + ") is there: it was purged or truncated meanwhile");
            }
            if (hasTimesOfIndex && limit > taken[index]) {
                limit = timed(folder, index, limit, now);
            }
            if (limit > taken[index]) {
                long boundary = Native.checked(Native.advance(folder, ids[index], taken[index], limit));
                if (boundary > taken[index]) {
                    written.add(JsonNodeFactory.instance.arrayNode().add(ids[index]).add(taken[index]).add(boundary).add(boundary)
                        .add(index));
                    taken[index] = boundary;
                }
            }
        }
    }

    /** Up to where messages have their times, or will have none: entries of the index come after the bytes. See timed.py. */
    private long timed(long folder, int index, long limit, long now) {
        Native.checked(Native.timeReach(folder, ids[index], reach));
        if (reach[0] >= limit || reach[1] == 0) {
            return limit;
        }
        if (missed[index] != reach[0]) {
            missed[index] = reach[0];
            missedSince[index] = now;
        }
        return now - missedSince[index] > 2 * reach[1] + INDEX_SLACK_NS ? limit : reach[0];
    }

    /** A recording has begun, or goes on, that the plan of this batch did not know. */
    private boolean isSomethingNew(long folder) {
        long count = Native.checked(Native.active(folder, active));
        while (count >= active.length) {
            active = new long[2 * (int) count];
            count = Native.checked(Native.active(folder, active));
        }
        boolean isNew = active[0] > newest;
        for (int index = 1; index <= count; index++) {
            isNew |= !known.contains(active[index]);
        }
        return isNew;
    }

    private static void pause(long nanoseconds) throws InterruptedIOException {
        try {
            Thread.sleep(Math.max(nanoseconds / 1_000_000, 1));
        } catch (InterruptedException error) {
            TaskContext.get().killTaskIfInterrupted();
            Thread.currentThread().interrupt();
            throw new InterruptedIOException("the task was interrupted while it waited for messages");
        }
    }

    /** Spark asks for rows by the calls with a time. */
    @Override
    public boolean next() {
        throw new UnsupportedOperationException();
    }

    @Override
    public InternalRow get() {
        return batch.getRow(row);
    }

    /** Behind the last row that Spark has got. */
    @Override
    public PartitionOffset getOffset() {
        long[] reached = given.clone();
        if (batch != null) {
            reached[at] = nextPosition(row);
        }
        return new RealTime.Reached(ids, reached);
    }

    @Override
    public CustomTaskMetric[] currentMetricsValues() {
        return reader.currentMetricsValues();
    }

    @Override
    public void close() throws IOException {
        reader.close();
    }
}
