package peers;

import io.aeron.FragmentAssembler;
import io.aeron.Subscription;
import io.aeron.archive.client.AeronArchive;
import io.aeron.archive.client.ReplayMerge;
import io.aeron.logbuffer.FragmentHandler;

import java.util.concurrent.TimeUnit;

/** A stock ReplayMerge; a thread of its own drives and digests it, so nobody else may use its archive client meanwhile. */
public final class MergePeer implements AutoCloseable
{
    private final Payload.Digest digest = new Payload.Digest();
    private final Subscription subscription;
    private final ReplayMerge merge;
    private final long count;
    private final Thread thread;
    private volatile boolean running = true;
    private volatile boolean merged;
    private volatile long seen;
    private volatile Throwable failure;

    MergePeer(
        final Subscription subscription,
        final AeronArchive archive,
        final String replayChannel,
        final String replayDestination,
        final String liveDestination,
        final long recordingId,
        final long startPosition,
        final long count)
    {
        this.subscription = subscription;
        this.count = count;
        this.merge = new ReplayMerge(
            subscription, archive, replayChannel, replayDestination, liveDestination, recordingId, startPosition);
        this.thread = new Thread(this::run, "merging");
        this.thread.setDaemon(true);
        this.thread.start();
    }

    private void run()
    {
        final FragmentHandler handler = new FragmentAssembler((buffer, offset, length, header) ->
        {
            digest.add(buffer, offset, length);
            seen = digest.count();
        });
        try
        {
            while (running && !(merge.isMerged() && digest.count() >= count))
            {
                if (merge.hasFailed())
                {
                    throw new IllegalStateException("the merge failed after " + digest.count() + " messages: " + merge);
                }
                if (merge.poll(handler, 10) == 0)
                {
                    Thread.yield();
                }
                merged = merge.isMerged();
            }
        }
        catch (final Throwable error)
        {
            failure = error;
        }
        finally
        {
            merged = merge.isMerged();
            merge.close();
        }
    }

    /** True when it is merged and all messages came in time; throws what stopped it. */
    public boolean awaitEnd(final long timeoutMs) throws InterruptedException
    {
        thread.join(Math.max(1, timeoutMs));
        final boolean ended = !thread.isAlive();
        if (failure != null)
        {
            throw new IllegalStateException("merging failed", failure);
        }
        return ended && merged && digest.count() == count;
    }

    public boolean isMerged()
    {
        return merged;
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

    @Override
    public void close() throws InterruptedException
    {
        running = false;
        thread.join(TimeUnit.SECONDS.toMillis(10));
        subscription.close();
    }
}
