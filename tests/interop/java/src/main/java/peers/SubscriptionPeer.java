package peers;

import io.aeron.FragmentAssembler;
import io.aeron.Image;
import io.aeron.Subscription;
import io.aeron.logbuffer.FragmentHandler;
import org.agrona.CloseHelper;

import java.io.BufferedWriter;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;

/** One stock subscription; a thread of its own reads and digests, so that a publisher can go on meanwhile. */
public final class SubscriptionPeer implements AutoCloseable
{
    private final Subscription subscription;

    SubscriptionPeer(final Subscription subscription)
    {
        this.subscription = subscription;
    }

    public Subscription raw()
    {
        return subscription;
    }

    /** The only image, or null: for tests with one publisher. */
    public Image image()
    {
        return subscription.imageCount() == 1 ? subscription.imageAtIndex(0) : null;
    }

    /** Rejects the only image: its publisher gets the reason, and the image goes. */
    public void reject(final String reason)
    {
        image().reject(reason);
    }

    /** Starts to read {@code count} whole messages; csvPath may be null, else a line for each message goes there. */
    public Reading read(final long count, final String csvPath)
    {
        final Reading reading = new Reading(subscription, count, csvPath);
        reading.thread.start();
        return reading;
    }

    @Override
    public void close()
    {
        subscription.close();
    }

    /** A read in progress. Results are valid after {@link #awaitEnd} returned true. */
    public static final class Reading implements AutoCloseable
    {
        private final Payload.Digest digest = new Payload.Digest();
        private final Map<Long, Payload.Digest> digestByKey = new TreeMap<>();
        private final Subscription subscription;
        private final long count;
        private final Thread thread;
        private final BufferedWriter csv;
        private volatile boolean running = true;
        private volatile Throwable failure;
        private volatile long seen;
        private long lastPosition = -1;

        Reading(final Subscription subscription, final long count, final String csvPath)
        {
            this.subscription = subscription;
            this.count = count;
            this.csv = csvPath == null ? null : open(csvPath);
            this.thread = new Thread(this::run, "reading");
            this.thread.setDaemon(true);
        }

        private static BufferedWriter open(final String path)
        {
            try
            {
                final BufferedWriter writer = Files.newBufferedWriter(Path.of(path));
                writer.write("index,end_position,length,crc32,reserved_value,session_id,term_id\n");
                return writer;
            }
            catch (final IOException error)
            {
                throw new UncheckedIOException(error);
            }
        }

        private void run()
        {
            final FragmentHandler handler = new FragmentAssembler((buffer, offset, length, header) ->
            {
                final long index = digest.count();
                final long crc = digest.add(buffer, offset, length);
                if (length >= Long.BYTES)
                {
                    final long key = buffer.getLong(offset, ByteOrder.LITTLE_ENDIAN) >> 32;
                    digestByKey.computeIfAbsent(key, (k) -> new Payload.Digest()).add(buffer, offset, length);
                }
                lastPosition = header.position();
                if (csv != null)
                {
                    write(index + "," + header.position() + "," + length + "," + String.format("%08x", crc) + "," +
                        header.reservedValue() + "," + header.sessionId() + "," + header.termId() + "\n");
                }
                seen = digest.count();
            });
            try
            {
                while (running && digest.count() < count)
                {
                    if (subscription.poll(handler, 1) == 0)
                    {
                        Thread.yield();
                    }
                }
            }
            catch (final Throwable error)
            {
                failure = error;
            }
            finally
            {
                CloseHelper.quietClose(csv);
            }
        }

        private void write(final String line)
        {
            try
            {
                csv.write(line);
            }
            catch (final IOException error)
            {
                throw new UncheckedIOException(error);
            }
        }

        /** True when all messages came in time; throws what stopped the reader. */
        public boolean awaitEnd(final long timeoutMs) throws InterruptedException
        {
            thread.join(Math.max(1, timeoutMs));
            final boolean ended = !thread.isAlive();
            if (failure != null)
            {
                throw new IllegalStateException("reader failed after " + digest.count() + " messages", failure);
            }
            return ended && digest.count() == count;
        }

        public long seen()
        {
            return seen;
        }

        public long count()
        {
            return digest.count();
        }

        public long bytes()
        {
            return digest.bytes();
        }

        public long crc()
        {
            return digest.crc();
        }

        /** Position to which the only image has been read, gaps that were filled included. */
        public long seenPosition()
        {
            return subscription.imageCount() == 1 ? subscription.imageAtIndex(0).position() : -1;
        }

        /** Count and CRC of the messages of one stream key, of 8 bytes or more: for streams of several publishers. */
        public String ofKey(final long key)
        {
            final Payload.Digest one = digestByKey.getOrDefault(key, new Payload.Digest());
            return one.count() + ":" + one.crc();
        }

        /** Position after the last message, -1 if there was none. */
        public long position()
        {
            return lastPosition;
        }

        @Override
        public void close() throws InterruptedException
        {
            running = false;
            thread.join(TimeUnit.SECONDS.toMillis(10));
        }
    }
}
