package peers;

import io.aeron.ExclusivePublication;
import io.aeron.Publication;
import io.aeron.logbuffer.BufferClaim;
import io.aeron.ReservedValueSupplier;
import org.agrona.ExpandableArrayBuffer;
import org.agrona.MutableDirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;

import java.util.List;
import java.util.concurrent.TimeUnit;

/** One stock publication, shared or exclusive, which publishes messages by the payload rule. */
public final class PublicationPeer implements AutoCloseable
{
    private final Publication publication;
    private final UnsafeBuffer buffer = new UnsafeBuffer(new byte[0]);
    private long backPressured;

    PublicationPeer(final Publication publication)
    {
        this.publication = publication;
    }

    public Publication raw()
    {
        return publication;
    }

    /** Number of tries that met back pressure in all calls so far. */
    public long backPressured()
    {
        return backPressured;
    }

    /** Publishes messages first .. first+count-1 of stream {@code id}, sizes taken in turn; returns the position. */
    public long publish(
        final long id, final long first, final long count, final List<Integer> sizes, final long timeoutMs)
    {
        buffer.wrap(new byte[sizes.stream().mapToInt(Integer::intValue).max().orElse(0)]);
        for (long i = first; i < first + count; i++)
        {
            final int length = sizes.get((int)(i % sizes.size()));
            final long reserved = i * Payload.RESERVED_FACTOR;
            final ReservedValueSupplier supplier = (term, offset, frameLength) -> reserved;
            Payload.fill(buffer, 0, length, id, i);
            untilAccepted(timeoutMs, i, () -> publication.offer(buffer, 0, length, supplier));
        }
        return publication.position();
    }

    /** As publish, written in place through tryClaim; no size may be over the maximum payload length. */
    public long claim(
        final long id, final long first, final long count, final List<Integer> sizes, final long timeoutMs)
    {
        final BufferClaim claim = new BufferClaim();
        for (long i = first; i < first + count; i++)
        {
            final int length = sizes.get((int)(i % sizes.size()));
            untilAccepted(timeoutMs, i, () -> publication.tryClaim(length, claim));
            Payload.fill(claim.buffer(), claim.offset(), length, id, i);
            claim.reservedValue(i * Payload.RESERVED_FACTOR);
            claim.commit();
        }
        return publication.position();
    }

    /** Claims room and never commits it, as a publisher does that dies in between; returns the position after it. */
    public long claimAndAbandon(final int length)
    {
        return publication.tryClaim(length, new BufferClaim());
    }

    /** One try with a payload of zeros: the new position or the stock code of the outcome. */
    public long offerOnce(final int length)
    {
        final MutableDirectBuffer zeros = new ExpandableArrayBuffer(Math.max(length, 1));
        return publication.offer(zeros, 0, length);
    }

    /** One try with message {@code index} of stream {@code id}: the new position or the stock code of the outcome. */
    public long publishOnce(final long id, final long index, final int length)
    {
        buffer.wrap(new byte[length]);
        Payload.fill(buffer, 0, length, id, index);
        return publication.offer(buffer, 0, length, (term, offset, frameLength) -> index * Payload.RESERVED_FACTOR);
    }

    /** Ends the stream for its subscribers at once, dropping what they have not read. */
    public void revoke()
    {
        ((ExclusivePublication)publication).revoke();
    }

    public boolean awaitConnected(final long timeoutMs)
    {
        final long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(timeoutMs);
        while (!publication.isConnected())
        {
            if (System.nanoTime() > deadline)
            {
                return false;
            }
            Thread.onSpinWait();
            Thread.yield();
        }
        return true;
    }

    private void untilAccepted(final long timeoutMs, final long index, final java.util.function.LongSupplier attempt)
    {
        final long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(timeoutMs);
        long result;
        while ((result = attempt.getAsLong()) < 0)
        {
            if (result == Publication.CLOSED || result == Publication.MAX_POSITION_EXCEEDED)
            {
                throw new IllegalStateException("message " + index + ": " + Publication.errorString(result));
            }
            if (System.nanoTime() > deadline)
            {
                throw new IllegalStateException(
                    "message " + index + " not accepted in time: " + Publication.errorString(result));
            }
            if (result == Publication.BACK_PRESSURED)
            {
                backPressured++;
            }
            Thread.yield();
        }
    }

    @Override
    public void close()
    {
        publication.close();
    }
}
