package peers;

import io.aeron.Aeron;
import io.aeron.ExclusivePublication;
import io.aeron.FragmentAssembler;
import io.aeron.Publication;
import io.aeron.Subscription;
import io.aeron.archive.client.AeronArchive;
import io.aeron.archive.codecs.SourceLocation;
import io.aeron.archive.status.RecordingPos;
import io.aeron.driver.MediaDriverVersion;
import io.aeron.logbuffer.FragmentHandler;
import org.agrona.BufferUtil;
import org.agrona.concurrent.IdleStrategy;
import org.agrona.concurrent.UnsafeBuffer;
import org.agrona.concurrent.status.CountersReader;

import java.util.Locale;
import java.util.concurrent.TimeUnit;

/**
 * Loads with stock clients, each on whatever driver and archive serves the directory. A load warms up first and
 * counts only the measured part; the last line of standard output is one JSON object.
 */
final class Load
{
    private static final long PATIENCE_NS = TimeUnit.SECONDS.toNanos(60);

    private Load()
    {
    }

    /** Exclusive publication as fast as the stream takes it. */
    static void publish(final Options options)
    {
        final int size = (int)options.number("size", 32);
        final long warmup = options.number("warmup", 1_000_000);
        final long count = options.number("count", 10_000_000);
        final String channel = options.text("channel", "aeron:ipc");
        final int stream = (int)options.number("stream", 1001);
        final IdleStrategy idle = options.idle("yield");
        final UnsafeBuffer message = new UnsafeBuffer(BufferUtil.allocateDirectAligned(Math.max(size, 8), 64));
        try (Aeron aeron = connect(options);
            ExclusivePublication publication = aeron.addExclusivePublication(channel, stream))
        {
            awaitConnected(publication, idle);
            offer(publication, message, size, warmup, idle);
            final long begin = System.nanoTime();
            final long retries = offer(publication, message, size, count, idle);
            final long end = System.nanoTime();
            report("ipc-pub", count, size, end - begin, ",\"retries\":" + retries);
            awaitDrained(publication, idle);
        }
    }

    /** Reads warmup + count messages; the time runs from the last one of the warm-up to the last of all. */
    static void subscribe(final Options options)
    {
        final long warmup = options.number("warmup", 1_000_000);
        final long count = options.number("count", 10_000_000);
        final String channel = options.text("channel", "aeron:ipc");
        final int stream = (int)options.number("stream", 1001);
        final int limit = (int)options.number("fragment-limit", 256);
        final IdleStrategy idle = options.idle("yield");
        final Tally tally = new Tally(warmup);
        final FragmentHandler handler = new FragmentAssembler(
            (buffer, offset, length, header) -> tally.on(length));
        try (Aeron aeron = connect(options); Subscription subscription = aeron.addSubscription(channel, stream))
        {
            System.out.println("READY");
            System.out.flush();
            long quietSince = System.nanoTime();
            while (tally.messages < warmup + count)
            {
                final int fragments = subscription.poll(handler, limit);
                idle.idle(fragments);
                if (fragments > 0)
                {
                    quietSince = 0;
                }
                else if (quietSince == 0)
                {
                    quietSince = System.nanoTime();
                }
                else if (System.nanoTime() - quietSince > PATIENCE_NS)
                {
                    throw new IllegalStateException("stream went quiet after " + tally.messages + " messages");
                }
            }
            final long end = System.nanoTime();
            report("ipc-sub", count, tally.size, end - tally.beginNs, "");
        }
    }

    /** Publishes into a recording and waits until the recorded position has caught up. */
    static void record(final Options options)
    {
        final int size = (int)options.number("size", 1024);
        final long warmup = options.number("warmup", 10_000);
        final long count = options.number("count", 1_000_000);
        final String channel = options.text("channel", "aeron:ipc");
        final int stream = (int)options.number("stream", 1001);
        final IdleStrategy idle = options.idle("yield");
        final UnsafeBuffer message = new UnsafeBuffer(BufferUtil.allocateDirectAligned(Math.max(size, 8), 64));
        try (Aeron aeron = connect(options);
            AeronArchive archive = AeronArchive.connect(new AeronArchive.Context()
                .aeron(aeron)
                .ownsAeronClient(false)
                .controlRequestChannel("aeron:ipc?term-length=64k")
                .controlResponseChannel("aeron:ipc?term-length=64k"));
            ExclusivePublication publication = aeron.addExclusivePublication(channel, stream))
        {
            final String recorded = channel + (channel.contains("?") ? "|" : "?") +
                "session-id=" + publication.sessionId();
            final long subscriptionId = archive.startRecording(recorded, stream, SourceLocation.LOCAL);
            awaitConnected(publication, idle);
            final CountersReader counters = aeron.countersReader();
            final int counterId = awaitCounter(counters, publication.sessionId(), idle);
            final long recordingId = RecordingPos.getRecordingId(counters, counterId);
            offer(publication, message, size, warmup, idle);
            awaitRecorded(counters, counterId, publication.position(), idle);
            final long begin = System.nanoTime();
            final long retries = offer(publication, message, size, count, idle);
            awaitRecorded(counters, counterId, publication.position(), idle);
            final long end = System.nanoTime();
            archive.stopRecording(subscriptionId);
            report("record", count, size, end - begin,
                ",\"retries\":" + retries + ",\"recording_id\":" + recordingId +
                ",\"position\":" + publication.position());
        }
    }

    private static Aeron connect(final Options options)
    {
        final Aeron.Context context = new Aeron.Context().aeronDirectoryName(options.required("dir"));
        options.refuseUnknown();
        return Aeron.connect(context);
    }

    /** Returns how many tries were turned down. */
    private static long offer(
        final ExclusivePublication publication,
        final UnsafeBuffer message,
        final int size,
        final long count,
        final IdleStrategy idle)
    {
        long retries = 0;
        for (long i = 0; i < count; i++)
        {
            if (size >= Long.BYTES)
            {
                message.putLong(0, i);
            }
            long result;
            idle.reset();
            while ((result = publication.offer(message, 0, size)) < 0)
            {
                if (result == Publication.CLOSED || result == Publication.NOT_CONNECTED ||
                    result == Publication.MAX_POSITION_EXCEEDED)
                {
                    throw new IllegalStateException("message " + i + ": " + Publication.errorString(result));
                }
                retries++;
                idle.idle();
            }
        }
        return retries;
    }

    private static void awaitConnected(final ExclusivePublication publication, final IdleStrategy idle)
    {
        await("a subscriber", idle, publication::isConnected);
    }

    /** IPC data are dropped with their publication only when all have read them; wait for that to see no loss. */
    private static void awaitDrained(final ExclusivePublication publication, final IdleStrategy idle)
    {
        await("the subscriber to leave", idle, () -> !publication.isConnected());
    }

    private static int awaitCounter(final CountersReader counters, final int sessionId, final IdleStrategy idle)
    {
        await("the recording to start", idle, () ->
            RecordingPos.findCounterIdBySession(counters, sessionId, Aeron.NULL_VALUE) !=
                CountersReader.NULL_COUNTER_ID);
        return RecordingPos.findCounterIdBySession(counters, sessionId, Aeron.NULL_VALUE);
    }

    private static void awaitRecorded(
        final CountersReader counters, final int counterId, final long position, final IdleStrategy idle)
    {
        await("the recorded position", idle, () -> counters.getCounterValue(counterId) >= position);
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

    private static void report(
        final String name, final long count, final int size, final long elapsedNs, final String more)
    {
        final double seconds = elapsedNs / 1e9;
        System.out.printf(Locale.ROOT,
            "{\"load\":\"%s\",\"messages\":%d,\"size\":%d,\"seconds\":%.6f,\"messages_per_second\":%.0f," +
            "\"bytes_per_second\":%.0f,\"aeron\":\"%s\"%s}%n",
            name, count, size, seconds, count / seconds, count * (double)size / seconds,
            MediaDriverVersion.VERSION, more);
        System.out.flush();
    }

    private static final class Tally
    {
        private final long warmup;
        private long messages;
        private long beginNs = System.nanoTime();
        private int size;

        private Tally(final long warmup)
        {
            this.warmup = warmup;
        }

        private void on(final int length)
        {
            size = length;
            if (++messages == warmup)
            {
                beginNs = System.nanoTime();
            }
        }
    }
}
