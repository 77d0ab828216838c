package aeronspark;

import java.math.BigDecimal;
import java.math.BigInteger;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * An array of Arrow's C data interface, read in place: its memory is there as long as it holds the memory's owner. Texts may be
 * indices of a dictionary, of 16 bits.
 *
 * <p>Offsets of arrays are 0, and lists and texts have offsets of 32 bits, as C makes them (sbe_export.c).
 */
final class ArrowColumn extends ColumnVector {
    private static final int LONGEST_LONG = 18;

    private final long nulls;
    private final long validity;
    private final long values;
    private final long data;
    private final ArrowColumn dictionary;
    private final ArrowColumn[] children;
    private final Object owner;

    /** @param array the address of a struct ArrowArray */
    ArrowColumn(DataType type, long array, Object owner) {
        super(type);
        this.owner = owner;
        long buffers = word(array, 5);
        long count = word(array, 3);
        nulls = word(array, 1);
        validity = word(buffers, 0);
        values = count > 1 ? word(buffers, 1) : 0;
        data = count > 2 ? word(buffers, 2) : 0;
        long names = word(array, 7);
        dictionary = names == 0 ? null : new ArrowColumn(type, names, owner);
        children = new ArrowColumn[(int) word(array, 4)];
        for (int at = 0; at < children.length; at++) {
            DataType of = type instanceof StructType ? ((StructType) type).apply(at).dataType() : ((ArrayType) type).elementType();
            children[at] = new ArrowColumn(of, child(array, at), owner);
        }
    }

    /** The address of a child of a struct ArrowArray. */
    static long child(long array, int at) {
        return word(word(array, 6), at);
    }

    private static long word(long address, int at) {
        return Platform.getLong(null, address + 8L * at);
    }

    @Override
    public void close() {
    }

    @Override
    public boolean hasNull() {
        return nulls != 0;
    }

    @Override
    public int numNulls() {
        return (int) nulls;
    }

    @Override
    public boolean isNullAt(int row) {
        return validity != 0 && (Platform.getByte(null, validity + (row >> 3)) >> (row & 7) & 1) == 0;
    }

    @Override
    public byte getByte(int row) {
        return Platform.getByte(null, values + row);
    }

    @Override
    public short getShort(int row) {
        return Platform.getShort(null, values + 2L * row);
    }

    @Override
    public int getInt(int row) {
        return Platform.getInt(null, values + 4L * row);
    }

    @Override
    public long getLong(int row) {
        return Platform.getLong(null, values + 8L * row);
    }

    @Override
    public float getFloat(int row) {
        return Platform.getFloat(null, values + 4L * row);
    }

    @Override
    public double getDouble(int row) {
        return Platform.getDouble(null, values + 8L * row);
    }

    /** Of 16 bytes, little-endian. */
    @Override
    public Decimal getDecimal(int row, int precision, int scale) {
        if (isNullAt(row)) {
            return null;
        }
        long low = Platform.getLong(null, values + 16L * row);
        if (precision <= LONGEST_LONG) {
            return Decimal.createUnsafe(low, precision, scale);
        }
        long high = Platform.getLong(null, values + 16L * row + 8);
        BigInteger unscaled = high == low >> 63 ? BigInteger.valueOf(low)
            : BigInteger.valueOf(high).shiftLeft(64).add(new BigInteger(Long.toUnsignedString(low)));
        return Decimal.apply(new BigDecimal(unscaled, scale), precision, scale);
    }

    @Override
    public UTF8String getUTF8String(int row) {
        if (isNullAt(row)) {
            return null;
        }
        if (dictionary != null) {
            return dictionary.getUTF8String(getShort(row));
        }
        int begin = getInt(row);
        return UTF8String.fromAddress(null, data + begin, getInt(row + 1) - begin);
    }

    @Override
    public byte[] getBinary(int row) {
        if (isNullAt(row)) {
            return null;
        }
        int begin = getInt(row);
        byte[] bytes = new byte[getInt(row + 1) - begin];
        Platform.copyMemory(null, data + begin, bytes, Platform.BYTE_ARRAY_OFFSET, bytes.length);
        return bytes;
    }

    @Override
    public ColumnarArray getArray(int row) {
        if (isNullAt(row)) {
            return null;
        }
        int begin = getInt(row);
        return new ColumnarArray(children[0], begin, getInt(row + 1) - begin);
    }

    @Override
    public ColumnVector getChild(int ordinal) {
        return children[ordinal];
    }

    /** No field of SBE is one. */
    @Override
    public boolean getBoolean(int row) {
        throw new UnsupportedOperationException();
    }

    @Override
    public ColumnarMap getMap(int row) {
        throw new UnsupportedOperationException();
    }
}
