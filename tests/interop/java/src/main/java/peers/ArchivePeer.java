package peers;

import io.aeron.Aeron;
import io.aeron.Subscription;
import io.aeron.archive.client.AeronArchive;
import io.aeron.archive.client.RecordingEventsAdapter;
import io.aeron.archive.client.RecordingEventsListener;
import io.aeron.archive.client.RecordingDescriptorConsumer;
import io.aeron.archive.client.ReplayParams;
import io.aeron.archive.codecs.SourceLocation;
import io.aeron.security.CredentialsSupplier;
import io.aeron.security.NullCredentialsSupplier;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;

/**
 * A stock AeronArchive client over IPC, with a stock client of its own for the data. One Python thread drives it.
 * Descriptors and signals come back as lines of {@code name=value} joined by {@code |}.
 */
public final class ArchivePeer implements AutoCloseable
{
    private final ClientPeer client;
    private final AeronArchive archive;
    private final List<String> signals = new CopyOnWriteArrayList<>();

    ArchivePeer(final String aeronDir, final int controlStreamId)
    {
        this(aeronDir, controlStreamId, new NullCredentialsSupplier());
    }

    ArchivePeer(final String aeronDir, final int controlStreamId, final CredentialsSupplier credentials)
    {
        client = new ClientPeer(aeronDir, false);
        try
        {
            archive = AeronArchive.connect(new AeronArchive.Context()
                .aeron(client.aeron())
                .ownsAeronClient(false)
                .credentialsSupplier(credentials)
                .controlRequestChannel("aeron:ipc?term-length=64k")
                .controlRequestStreamId(controlStreamId)
                .controlResponseChannel("aeron:ipc?term-length=64k")
                .messageTimeoutNs(TimeUnit.MILLISECONDS.toNanos(Long.getLong("peers.message.timeout.ms", 5_000)))
                .recordingSignalConsumer((sessionId, correlationId, recordingId, subscriptionId, position, signal) ->
                    signals.add("recording=" + recordingId + "|position=" + position + "|signal=" + signal)));
        }
        catch (final RuntimeException error)
        {
            client.close();
            throw error;
        }
    }

    /** The client itself, for calls that need no help. */
    public AeronArchive raw()
    {
        return archive;
    }

    public ClientPeer client()
    {
        return client;
    }

    /** Starts a recording of a local stream; returns the subscription id. */
    public long startRecording(final String channel, final int streamId)
    {
        return archive.startRecording(channel, streamId, SourceLocation.LOCAL);
    }

    /** As startRecording; the subscription ends with the first recording. */
    public long startAutoStopRecording(final String channel, final int streamId)
    {
        return archive.startRecording(channel, streamId, SourceLocation.LOCAL, true);
    }

    public long extendRecording(final long recordingId, final String channel, final int streamId)
    {
        return archive.extendRecording(
            recordingId, channel, streamId, SourceLocation.LOCAL);
    }

    /** Starts a replay into a fresh subscription on this client; a length below zero means to the end. */
    public Replay replay(
        final long recordingId, final long position, final long length, final int replayStreamId)
    {
        final String channel = "aeron:ipc?alias=replay";
        final long replaySessionId = archive.startReplay(recordingId, position, length, channel, replayStreamId);
        return subscribe(channel, replaySessionId, replayStreamId);
    }

    /** As replay, held back at the value of a counter. */
    public Replay boundedReplay(
        final long recordingId,
        final long position,
        final long length,
        final int limitCounterId,
        final int replayStreamId)
    {
        final String channel = "aeron:ipc?alias=replay";
        final long replaySessionId = archive.startReplay(
            recordingId,
            channel,
            replayStreamId,
            new ReplayParams().position(position).length(length).boundingLimitCounterId(limitCounterId));
        return subscribe(channel, replaySessionId, replayStreamId);
    }

    private Replay subscribe(final String channel, final long replaySessionId, final int streamId)
    {
        final Subscription subscription = client.aeron().addSubscription(
            channel + "|session-id=" + (int)replaySessionId, streamId);
        return new Replay(replaySessionId, new SubscriptionPeer(subscription));
    }

    /** Merges a recording from its start into the live stream of a publication with a control address. */
    public MergePeer merge(
        final String liveControl, final int streamId, final int sessionId, final long recordingId, final long count)
    {
        final Subscription subscription =
            client.aeron().addSubscription("aeron:udp?control-mode=manual|session-id=" + sessionId, streamId);
        return new MergePeer(
            subscription,
            archive,
            "aeron:udp?session-id=" + sessionId,
            "aeron:udp?endpoint=127.0.0.1:0",
            "aeron:udp?endpoint=127.0.0.1:0|control=" + liveControl,
            recordingId,
            archive.getStartPosition(recordingId),
            count);
    }

    public List<String> listRecordings(final long fromRecordingId, final int count)
    {
        final List<String> lines = new ArrayList<>();
        archive.listRecordings(fromRecordingId, count, describer(lines));
        return lines;
    }

    public List<String> listRecordingsForUri(
        final long fromRecordingId, final int count, final String channelFragment, final int streamId)
    {
        final List<String> lines = new ArrayList<>();
        archive.listRecordingsForUri(fromRecordingId, count, channelFragment, streamId, describer(lines));
        return lines;
    }

    public List<String> listRecording(final long recordingId)
    {
        final List<String> lines = new ArrayList<>();
        archive.listRecording(recordingId, describer(lines));
        return lines;
    }

    public List<String> listRecordingSubscriptions(
        final int pseudoIndex, final int count, final String fragment, final int streamId)
    {
        final List<String> lines = new ArrayList<>();
        archive.listRecordingSubscriptions(
            pseudoIndex,
            count,
            fragment,
            streamId,
            true,
            (sessionId, correlationId, subscriptionId, stream, channel) ->
                lines.add("subscription=" + subscriptionId + "|stream=" + stream + "|channel=" + channel));
        return lines;
    }

    /** Delivers what has come in and returns all signals so far. */
    public List<String> signals()
    {
        archive.pollForRecordingSignals();
        return new ArrayList<>(signals);
    }

    /** Collects recording events of a stream from now on. */
    public Events events(final String channel, final int streamId)
    {
        return new Events(client.aeron().addSubscription(channel, streamId));
    }

    private static RecordingDescriptorConsumer describer(final List<String> lines)
    {
        return (controlSessionId, correlationId, recordingId, startTimestamp, stopTimestamp, startPosition,
            stopPosition, initialTermId, segmentFileLength, termBufferLength, mtuLength, sessionId, streamId,
            strippedChannel, originalChannel, sourceIdentity) -> lines.add(
                "recordingId=" + recordingId +
                "|startTimestamp=" + startTimestamp + "|stopTimestamp=" + stopTimestamp +
                "|startPosition=" + startPosition + "|stopPosition=" + stopPosition +
                "|initialTermId=" + initialTermId + "|segmentFileLength=" + segmentFileLength +
                "|termBufferLength=" + termBufferLength + "|mtuLength=" + mtuLength +
                "|sessionId=" + sessionId + "|streamId=" + streamId + "|strippedChannel=" + strippedChannel +
                "|originalChannel=" + originalChannel + "|sourceIdentity=" + sourceIdentity);
    }

    @Override
    public void close()
    {
        archive.close();
        client.close();
    }

    /** A replay and the subscription that reads it. */
    public record Replay(long sessionId, SubscriptionPeer subscription)
    {
    }

    /** Recording progress events as text; poll from one thread. */
    public static final class Events implements AutoCloseable, RecordingEventsListener
    {
        private final List<String> lines = new ArrayList<>();
        private final Subscription subscription;
        private final RecordingEventsAdapter adapter;

        Events(final Subscription subscription)
        {
            this.subscription = subscription;
            this.adapter = new RecordingEventsAdapter(this, subscription, 10);
        }

        public List<String> poll()
        {
            while (adapter.poll() > 0)
            {
                Thread.onSpinWait();
            }
            return new ArrayList<>(lines);
        }

        @Override
        public void onStart(
            final long recordingId,
            final long startPosition,
            final int sessionId,
            final int streamId,
            final String channel,
            final String sourceIdentity)
        {
            lines.add("started recording=" + recordingId + " start=" + startPosition + " session=" + sessionId +
                " stream=" + streamId + " channel=" + channel + " source=" + sourceIdentity);
        }

        @Override
        public void onProgress(final long recordingId, final long startPosition, final long position)
        {
            lines.add("progress recording=" + recordingId + " start=" + startPosition + " position=" + position);
        }

        @Override
        public void onStop(final long recordingId, final long startPosition, final long stopPosition)
        {
            lines.add("stopped recording=" + recordingId + " start=" + startPosition + " stop=" + stopPosition);
        }

        @Override
        public void close()
        {
            subscription.close();
        }
    }
}
