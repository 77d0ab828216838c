package peers;

import io.aeron.Aeron;
import io.aeron.archive.Archive;
import io.aeron.archive.ArchiveThreadingMode;
import io.aeron.archive.ArchivingMediaDriver;
import io.aeron.archive.client.AeronArchive;
import io.aeron.driver.MediaDriver;
import io.aeron.driver.MediaDriverVersion;
import io.aeron.driver.ThreadingMode;
import io.aeron.security.CredentialsSupplier;
import org.agrona.concurrent.UnsafeBuffer;

import java.io.File;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/**
 * What Python reaches through the py4j gateway: it launches stock drivers, archives and clients inside this JVM.
 * Settings are stock property names; they are set while a context is built and taken back after it, so one
 * launch does not leak into the next. Launches are therefore synchronized.
 */
public final class Peer
{
    /** Version of the stock release on the class path, as it reports itself. */
    public String version()
    {
        return MediaDriverVersion.VERSION;
    }

    public synchronized MediaDriver driver(final String aeronDir, final Map<String, String> settings)
    {
        return with(settings, () -> MediaDriver.launch(driverContext(aeronDir)));
    }

    /** A stock archive beside a running driver: control over IPC, network control channel off. */
    public synchronized Archive archive(
        final String aeronDir, final String archiveDir, final Map<String, String> settings)
    {
        return with(settings, () -> Archive.launch(archiveContext(aeronDir, archiveDir)));
    }

    public synchronized ArchivingMediaDriver archivingDriver(
        final String aeronDir, final String archiveDir, final Map<String, String> settings)
    {
        return with(settings, () -> ArchivingMediaDriver.launch(
            driverContext(aeronDir).spiesSimulateConnection(true), archiveContext(aeronDir, archiveDir)));
    }

    public ClientPeer client(final String aeronDir)
    {
        return new ClientPeer(aeronDir, false);
    }

    /** A client whose conductor runs only when {@link ClientPeer#invoke()} is called. */
    public ClientPeer invokedClient(final String aeronDir)
    {
        return new ClientPeer(aeronDir, true);
    }

    public ArchivePeer archiveClient(final String aeronDir)
    {
        return new ArchivePeer(aeronDir, AeronArchive.Configuration.CONTROL_STREAM_ID_DEFAULT);
    }

    /** A client that logs in as a user of our archive's credentials file: by password, or by the answer to a challenge. */
    public ArchivePeer archiveClientAs(
        final String aeronDir, final String user, final String password, final boolean isChallenged)
    {
        final byte[] credentials = (user + ":" + password).getBytes(StandardCharsets.US_ASCII);
        final CredentialsSupplier byPassword = new CredentialsSupplier()
        {
            public byte[] encodedCredentials()
            {
                return credentials;
            }

            public byte[] onChallenge(final byte[] encodedChallenge)
            {
                throw new IllegalStateException("challenged in spite of a password");
            }
        };
        return new ArchivePeer(
            aeronDir,
            AeronArchive.Configuration.CONTROL_STREAM_ID_DEFAULT,
            isChallenged ? new ScramCredentialsSupplier(user, password) : byPassword);
    }

    /** A client of the archive that listens on another control stream than the usual one. */
    public ArchivePeer archiveClientOn(final String aeronDir, final int controlStreamId)
    {
        return new ArchivePeer(aeronDir, controlStreamId);
    }

    /** Asks the driver of a directory to end, as stock DriverTool does; true when the request was sent. */
    public boolean requestTermination(final String aeronDir, final String token)
    {
        final byte[] bytes = token.getBytes(StandardCharsets.US_ASCII);
        return Aeron.Context.requestDriverTermination(new File(aeronDir), new UnsafeBuffer(bytes), 0, bytes.length);
    }

    static MediaDriver.Context driverContext(final String aeronDir)
    {
        return new MediaDriver.Context()
            .aeronDirectoryName(aeronDir)
            .threadingMode(ThreadingMode.valueOf(System.getProperty("aeron.threading.mode", "SHARED")))
            .errorHandler(Peer::report);
    }

    static Archive.Context archiveContext(final String aeronDir, final String archiveDir)
    {
        return new Archive.Context()
            .aeronDirectoryName(aeronDir)
            .archiveDir(new File(archiveDir))
            .threadingMode(ArchiveThreadingMode.valueOf(
                System.getProperty("aeron.archive.threading.mode", "SHARED")))
            .controlChannelEnabled(Boolean.getBoolean("aeron.archive.control.channel.enabled"))
            .replicationChannel("aeron:udp?endpoint=localhost:0")
            // Asked for where the network control channel is off; it is opened by a replication only.
            .archiveClientContext(new AeronArchive.Context().controlResponseChannel("aeron:udp?endpoint=localhost:0"))
            .errorHandler(Peer::report);
    }

    private static void report(final Throwable error)
    {
        System.err.println("stock peer: " + error);
    }

    private static <T> T with(final Map<String, String> settings, final java.util.function.Supplier<T> launch)
    {
        settings.forEach(System::setProperty);
        try
        {
            return launch.get();
        }
        finally
        {
            settings.keySet().forEach(System::clearProperty);
        }
    }
}
