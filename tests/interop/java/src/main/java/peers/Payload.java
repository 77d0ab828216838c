package peers;

import org.agrona.DirectBuffer;
import org.agrona.MutableDirectBuffer;

import java.nio.ByteOrder;
import java.util.zip.CRC32;

/**
 * The payload rule shared with tests/kit/payload.py and the captured vectors: byte j of message i of stream id
 * is (id * 17 + i * 31 + j) & 0xff; a payload of 8 bytes or more then begins with the int64 (id << 32 | i),
 * little-endian. The reserved value of message i is i * 1000003.
 */
final class Payload
{
    static final long RESERVED_FACTOR = 1_000_003L;

    private Payload()
    {
    }

    static void fill(
        final MutableDirectBuffer buffer, final int offset, final int length, final long id, final long index)
    {
        final long base = id * 17 + index * 31;
        for (int j = 0; j < length; j++)
        {
            buffer.putByte(offset + j, (byte)(base + j));
        }
        if (length >= Long.BYTES)
        {
            buffer.putLong(offset, id << 32 | index, ByteOrder.LITTLE_ENDIAN);
        }
    }

    /** A running digest over payloads in order; not thread safe, read it after its writer has ended. */
    static final class Digest
    {
        private final CRC32 all = new CRC32();
        private final CRC32 one = new CRC32();
        private byte[] scratch = new byte[4096];
        private long count;
        private long bytes;

        /** Adds a payload and returns the CRC-32 of it alone. */
        long add(final DirectBuffer buffer, final int offset, final int length)
        {
            if (length > scratch.length)
            {
                scratch = new byte[length * 2];
            }
            buffer.getBytes(offset, scratch, 0, length);
            all.update(scratch, 0, length);
            one.reset();
            one.update(scratch, 0, length);
            count++;
            bytes += length;
            return one.getValue();
        }

        long count()
        {
            return count;
        }

        long bytes()
        {
            return bytes;
        }

        long crc()
        {
            return all.getValue();
        }
    }
}
