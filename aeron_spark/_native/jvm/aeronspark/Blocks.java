package aeronspark;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Iterator;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * A task's rows of one column of bytes, in blocks of many (writing/blocks.py has the layout). A block is a row with one value,
 * which on Spark's way to Python costs what one row does. Where a task has more rows than a block holds, it names a socket, by
 * which the others go: what Spark does with the bytes of a value costs more than to publish them.
 */
final class Blocks implements Iterator<InternalRow>, AutoCloseable {
    /** Spark sends what it has gathered when that is so long: {@link AeronWriter} sets it. A shorter block would not arrive. */
    static final int SENT_BYTES = 1 << 16;

    private static final int MAX_ROWS = 1 << 14;
    private static final int MAX_BYTES = 1 << 20;
    private static final int HEAD_LENGTH = 24;

    private final Iterator<InternalRow> rows;
    private final boolean isText;
    private final ByteBuffer head =
        ByteBuffer.allocate(HEAD_LENGTH + Integer.BYTES * (MAX_ROWS + 1)).order(ByteOrder.nativeOrder());
    private byte[] values = new byte[MAX_BYTES];
    private int length;
    /** The last row's value, which did not fit: the row is valid until the next one is asked for. */
    private UTF8String waiting;
    private long gathered;
    private boolean isOffered;
    private boolean isEnded;
    private BlockSocket socket;

    Blocks(Iterator<InternalRow> rows, boolean isText) {
        this.rows = rows;
        this.isText = isText;
    }

    @Override
    public boolean hasNext() {
        return waiting != null || !isEnded && rows.hasNext();
    }

    /** A block; where the worker has come to the socket, all others go there before, and this one holds none. */
    @Override
    public InternalRow next() {
        if (socket != null) {
            if (socket.accept()) {
                sendAll();
            }
            close();
        }
        gather();
        byte[] name = new byte[0];
        if (!isOffered && head.limit() + length >= SENT_BYTES && hasNext()) {
            isOffered = true;
            socket = BlockSocket.open();
            name = socket == null ? name : socket.name();
        }
        head.putInt(8, name.length);
        byte[] block = new byte[head.limit() + length + name.length];
        ByteBuffer.wrap(block).put(head.rewind()).put(values, 0, length).put(name);
        return new GenericInternalRow(new Object[] {block});
    }

    /** A worker that goes away has failed, and says why to Spark, which reads it behind the last row: so they end then. */
    private void sendAll() {
        while (hasNext() && !isEnded) {
            gather();
            if (!socket.send(head.rewind(), ByteBuffer.wrap(values, 0, length))) {
                waiting = null;
                isEnded = true;
            }
        }
    }

    /** The next block into head and values: up to a null, which Python refuses, or to the first value that does not fit. */
    private void gather() {
        long first = gathered;
        int count = 0;
        boolean endsInNull = false;
        length = 0;
        head.clear().putInt(HEAD_LENGTH, 0);
        while (count < MAX_ROWS && !endsInNull && hasNext()) {
            UTF8String value = waiting == null ? valueOf(rows.next()) : waiting;
            waiting = null;
            if (value == null) {
                endsInNull = true;
                gathered++;
                break;
            }
            if (value.numBytes() > values.length - length) {
                if (count > 0) {
                    waiting = value;
                    break;
                }
                values = new byte[value.numBytes()];
            }
            value.writeToMemory(values, Platform.BYTE_ARRAY_OFFSET + length);
            length += value.numBytes();
            count++;
            gathered++;
            head.putInt(HEAD_LENGTH + Integer.BYTES * count, length);
        }
        head.putInt(0, count).putInt(4, length).putInt(8, 0).putInt(12, endsInNull ? 1 : 0).putLong(16, first);
        head.limit(HEAD_LENGTH + Integer.BYTES * (count + 1));
    }

    /** Without a copy: bytes of such a row are read as text's are. */
    private UTF8String valueOf(InternalRow row) {
        if (row.isNullAt(0)) {
            return null;
        }
        return isText || row instanceof UnsafeRow ? row.getUTF8String(0) : UTF8String.fromBytes(row.getBinary(0));
    }

    @Override
    public void close() {
        if (socket != null) {
            socket.close();
            socket = null;
        }
    }
}
