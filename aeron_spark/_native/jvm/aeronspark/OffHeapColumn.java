package aeronspark;

import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/** A column that C has filled, read in place. Its memory is there as long as it holds the memory's owner. */
final class OffHeapColumn extends ColumnVector {
    private final long data;
    private final long offsets;
    private final long ends;
    private final long isNull;
    private final long messages;
    private final Object owner;

    /**
     * @param data of numbers; or of bytes, with the offsets where those of a row begin and end
     * @param isNull 0 where no row is null
     * @param messages 4 bytes a row, its message; 0 where each message is one row
     */
    OffHeapColumn(DataType type, long data, long offsets, long ends, long isNull, long messages, Object owner) {
        super(type);
        this.data = data;
        this.offsets = offsets;
        this.ends = ends;
        this.isNull = isNull;
        this.messages = messages;
        this.owner = owner;
    }

    private long at(int row) {
        return messages == 0 ? row : Platform.getInt(null, messages + 4L * row);
    }

    @Override
    public void close() {
    }

    @Override
    public boolean hasNull() {
        return isNull != 0;
    }

    /** Spark asks for this nowhere but in tests of its own. */
    @Override
    public int numNulls() {
        throw new UnsupportedOperationException();
    }

    @Override
    public boolean isNullAt(int row) {
        return isNull != 0 && Platform.getByte(null, isNull + at(row)) != 0;
    }

    @Override
    public long getLong(int row) {
        return Platform.getLong(null, data + 8L * at(row));
    }

    @Override
    public int getInt(int row) {
        return Platform.getInt(null, data + 4L * at(row));
    }

    /** Only flags are a short; C has them as bytes. */
    @Override
    public short getShort(int row) {
        return (short) (Platform.getByte(null, data + at(row)) & 0xff);
    }

    @Override
    public byte[] getBinary(int row) {
        long message = 4L * at(row);
        int begin = Platform.getInt(null, offsets + message);
        byte[] bytes = new byte[Platform.getInt(null, ends + message) - begin];
        Platform.copyMemory(null, data + begin, bytes, Platform.BYTE_ARRAY_OFFSET, bytes.length);
        return bytes;
    }

    @Override
    public boolean getBoolean(int row) {
        throw new UnsupportedOperationException();
    }

    @Override
    public byte getByte(int row) {
        throw new UnsupportedOperationException();
    }

    @Override
    public float getFloat(int row) {
        throw new UnsupportedOperationException();
    }

    @Override
    public double getDouble(int row) {
        throw new UnsupportedOperationException();
    }

    @Override
    public ColumnarArray getArray(int row) {
        throw new UnsupportedOperationException();
    }

    @Override
    public ColumnarMap getMap(int row) {
        throw new UnsupportedOperationException();
    }

    @Override
    public Decimal getDecimal(int row, int precision, int scale) {
        throw new UnsupportedOperationException();
    }

    @Override
    public UTF8String getUTF8String(int row) {
        long message = 4L * at(row);
        int begin = Platform.getInt(null, offsets + message);
        return UTF8String.fromAddress(null, data + begin, Platform.getInt(null, ends + message) - begin);
    }

    @Override
    public ColumnVector getChild(int ordinal) {
        throw new UnsupportedOperationException();
    }
}
