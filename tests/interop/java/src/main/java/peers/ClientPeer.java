package peers;

import io.aeron.Aeron;
import io.aeron.Counter;
import io.aeron.Image;
import org.agrona.concurrent.status.CountersReader;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

/** A stock client with its events kept as text, oldest first, for a test to look at. */
public final class ClientPeer implements AutoCloseable
{
    private final Aeron aeron;
    private final List<String> events = new CopyOnWriteArrayList<>();

    ClientPeer(final String aeronDir, final boolean invoked)
    {
        final Aeron.Context context = new Aeron.Context()
            .aeronDirectoryName(aeronDir)
            .driverTimeoutMs(Long.getLong("peers.driver.timeout.ms", 10_000))
            .errorHandler((error) -> events.add("error " + error.getClass().getSimpleName() + " " + error.getMessage()))
            .subscriberErrorHandler((error) -> events.add("subscriber-error " + error))
            .availableImageHandler((image) -> events.add(describe("available-image", image)))
            .unavailableImageHandler((image) -> events.add(describe("unavailable-image", image)))
            .availableCounterHandler((counters, registrationId, counterId) ->
                events.add("available-counter id=" + counterId + " registration=" + registrationId))
            .unavailableCounterHandler((counters, registrationId, counterId) ->
                events.add("unavailable-counter id=" + counterId + " registration=" + registrationId))
            .publicationErrorFrameHandler((frame) -> events.add(
                "publication-error code=" + frame.errorCode() + " session=" + frame.sessionId() +
                " stream=" + frame.streamId() + " message=" + frame.errorMessage()))
            .closeHandler(() -> events.add("closed"));
        if (invoked)
        {
            context.useConductorAgentInvoker(true);
        }
        this.aeron = Aeron.connect(context);
    }

    private static String describe(final String what, final Image image)
    {
        return what + " session=" + image.sessionId() + " stream=" + image.subscription().streamId() +
            " position=" + image.position() + " eos=" + image.isEndOfStream() + " source=" + image.sourceIdentity();
    }

    public Aeron aeron()
    {
        return aeron;
    }

    public int invoke()
    {
        return aeron.conductorAgentInvoker().invoke();
    }

    /** A copy of the events so far. */
    public List<String> events()
    {
        return new ArrayList<>(events);
    }

    public PublicationPeer publication(final String channel, final int streamId)
    {
        return new PublicationPeer(aeron.addPublication(channel, streamId));
    }

    public PublicationPeer exclusivePublication(final String channel, final int streamId)
    {
        return new PublicationPeer(aeron.addExclusivePublication(channel, streamId));
    }

    public SubscriptionPeer subscription(final String channel, final int streamId)
    {
        return new SubscriptionPeer(aeron.addSubscription(channel, streamId));
    }

    public Counter counter(final int typeId, final String label)
    {
        return aeron.addCounter(typeId, label);
    }

    public Counter staticCounter(final int typeId, final String label, final long registrationId)
    {
        return aeron.addStaticCounter(typeId, label, registrationId);
    }

    /** Every allocated counter as {@code id|type|value|registration|owner|reference|label}. */
    public List<String> counters()
    {
        final List<String> lines = new ArrayList<>();
        final CountersReader reader = aeron.countersReader();
        reader.forEach((counterId, typeId, keyBuffer, label) -> lines.add(
            counterId + "|" + typeId + "|" + reader.getCounterValue(counterId) + "|" +
            reader.getCounterRegistrationId(counterId) + "|" + reader.getCounterOwnerId(counterId) + "|" +
            reader.getCounterReferenceId(counterId) + "|" + label));
        return lines;
    }

    @Override
    public void close()
    {
        aeron.close();
    }
}
