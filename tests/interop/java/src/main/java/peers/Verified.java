package peers;

import io.aeron.Aeron;
import io.aeron.ExclusivePublication;
import io.aeron.FragmentAssembler;
import io.aeron.Publication;
import io.aeron.Subscription;
import io.aeron.logbuffer.FragmentHandler;
import org.agrona.BufferUtil;
import org.agrona.concurrent.IdleStrategy;
import org.agrona.concurrent.UnsafeBuffer;

import java.nio.ByteOrder;
import java.util.Locale;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.zip.CRC32;

/**
 * A stream of messages that check themselves, for long runs between two drivers: the int64 index of the message, bytes out
 * of a block of random ones, and the CRC-32 of all before it. The length follows from the index: 1 of 2,000 has 64 KiB,
 * 1 of 100 has 1 to 8 KiB, the others 32 to 255 bytes. The reader fails at the first message that is out of sequence, of
 * another length or of another checksum. Progress goes to standard output, and at the end one JSON object.
 */
final class Verified
{
    private static final long PATIENCE_NS = TimeUnit.SECONDS.toNanos(30);
    private static final int LONGEST = 64 * 1024;
    private static final int STEPS = 20;
    private static final int SHIFTS = 4096;

    private Verified()
    {
    }

    static int length(final long index)
    {
        final long chance = mix(index);
        final int pick = (int)Long.remainderUnsigned(chance, 2000);
        final int more = (int)(chance >>> 40);
        return 0 == pick ? LONGEST : pick <= 20 ? 1024 + more % 7169 : 32 + more % 224;
    }

    /** The finaliser of splitmix64. */
    private static long mix(final long index)
    {
        long z = (index + 1) * 0x9E3779B97F4A7C15L;
        z = (z ^ (z >>> 30)) * 0xBF58476D1CE4E5B9L;
        z = (z ^ (z >>> 27)) * 0x94D049BB133111EBL;
        return z ^ (z >>> 31);
    }

    static void publish(final Options options)
    {
        final long count = options.number("count", 10_000_000);
        final String channel = options.required("channel");
        final int stream = (int)options.number("stream", 1001);
        final IdleStrategy idle = options.idle("backoff");
        final UnsafeBuffer message = new UnsafeBuffer(BufferUtil.allocateDirectAligned(LONGEST, 64));
        final byte[] bytes = new byte[LONGEST];
        final byte[] random = new byte[LONGEST + SHIFTS];
        new Random(count).nextBytes(random);
        final CRC32 crc = new CRC32();
        try (Aeron aeron = connect(options);
            ExclusivePublication publication = aeron.addExclusivePublication(channel, stream))
        {
            await("a subscriber", idle, publication::isConnected);
            final long begin = System.nanoTime();
            for (long i = 0; i < count; i++)
            {
                final int length = length(i);
                System.arraycopy(random, (int)(i % SHIFTS), bytes, 0, length - Integer.BYTES);
                message.putBytes(0, bytes, 0, length);
                message.putLong(0, i, ByteOrder.LITTLE_ENDIAN);
                message.getBytes(0, bytes, 0, Long.BYTES);
                crc.reset();
                crc.update(bytes, 0, length - Integer.BYTES);
                message.putInt(length - Integer.BYTES, (int)crc.getValue(), ByteOrder.LITTLE_ENDIAN);
                offer(publication, message, length, i, idle);
            }
            await("the subscriber to leave", idle, () -> !publication.isConnected());
            report("verified-pub", count, publication.position(), System.nanoTime() - begin);
        }
    }

    private static void offer(
        final ExclusivePublication publication,
        final UnsafeBuffer message,
        final int length,
        final long index,
        final IdleStrategy idle)
    {
        long deadline = 0;
        long result;
        while ((result = publication.offer(message, 0, length)) < 0)
        {
            final long now = System.nanoTime();
            deadline = 0 == deadline ? now + PATIENCE_NS : deadline;
            if (result == Publication.CLOSED || result == Publication.MAX_POSITION_EXCEEDED || now - deadline > 0)
            {
                throw new IllegalStateException("message " + index + ": " + Publication.errorString(result));
            }
            idle.idle();
        }
        idle.reset();
    }

    static void subscribe(final Options options)
    {
        final long count = options.number("count", 10_000_000);
        final String channel = options.required("channel");
        final int stream = (int)options.number("stream", 1001);
        final IdleStrategy idle = options.idle("backoff");
        final Checker checker = new Checker();
        final FragmentHandler handler = new FragmentAssembler(
            (buffer, offset, length, header) ->
            {
                buffer.getBytes(offset, checker.bytes, 0, Math.min(length, LONGEST));
                checker.check(length);
            });
        try (Aeron aeron = connect(options); Subscription subscription = aeron.addSubscription(channel, stream))
        {
            System.out.println("READY");
            System.out.flush();
            final long begin = System.nanoTime();
            long quietSince = begin;
            long told = 0;
            while (checker.next < count)
            {
                final int fragments = subscription.poll(handler, 64);
                idle.idle(fragments);
                if (fragments > 0)
                {
                    quietSince = 0;
                    if (checker.next * STEPS / count > told)
                    {
                        told = checker.next * STEPS / count;
                        System.out.printf(Locale.ROOT, "progress %d of %d messages, %.0f MB, %.1f s%n",
                            checker.next, count, checker.total / 1e6, (System.nanoTime() - begin) / 1e9);
                        System.out.flush();
                    }
                }
                else if (quietSince == 0)
                {
                    quietSince = System.nanoTime();
                }
                else if (System.nanoTime() - quietSince > PATIENCE_NS)
                {
                    throw new IllegalStateException("stream went quiet after " + checker.next + " messages");
                }
            }
            report("verified-sub", count, checker.total, System.nanoTime() - begin);
        }
    }

    private static Aeron connect(final Options options)
    {
        final Aeron.Context context = new Aeron.Context().aeronDirectoryName(options.required("dir"));
        options.refuseUnknown();
        return Aeron.connect(context);
    }

    private static void await(
        final String what, final IdleStrategy idle, final java.util.function.BooleanSupplier done)
    {
        final long deadline = System.nanoTime() + PATIENCE_NS;
        while (!done.getAsBoolean())
        {
            if (System.nanoTime() > deadline)
            {
                throw new IllegalStateException("timed out waiting for " + what);
            }
            idle.idle();
        }
    }

    private static void report(final String name, final long count, final long bytes, final long elapsedNs)
    {
        System.out.printf(Locale.ROOT, "{\"load\":\"%s\",\"messages\":%d,\"bytes\":%d,\"seconds\":%.3f}%n",
            name, count, bytes, elapsedNs / 1e9);
        System.out.flush();
    }

    private static final class Checker
    {
        private final byte[] bytes = new byte[LONGEST];
        private final CRC32 crc = new CRC32();
        private final UnsafeBuffer view = new UnsafeBuffer(bytes);
        private long next;
        private long total;

        void check(final int length)
        {
            if (length != length(next))
            {
                throw new IllegalStateException(
                    "message " + next + " has " + length + " bytes instead of " + length(next));
            }
            final long index = view.getLong(0, ByteOrder.LITTLE_ENDIAN);
            if (index != next)
            {
                throw new IllegalStateException("message " + index + " came where " + next + " was due");
            }
            crc.reset();
            crc.update(bytes, 0, length - Integer.BYTES);
            if ((int)crc.getValue() != view.getInt(length - Integer.BYTES, ByteOrder.LITTLE_ENDIAN))
            {
                throw new IllegalStateException("message " + next + " has another checksum than it was sent with");
            }
            next++;
            total += length;
        }
    }
}
