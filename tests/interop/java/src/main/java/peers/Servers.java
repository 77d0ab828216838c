package peers;

import io.aeron.archive.Archive;
import io.aeron.archive.ArchiveThreadingMode;
import io.aeron.archive.ArchivingMediaDriver;
import io.aeron.driver.MediaDriver;
import io.aeron.driver.ThreadingMode;
import org.agrona.concurrent.ShutdownSignalBarrier;

import java.util.function.Function;

/**
 * Stock servers as processes of their own, for tests that kill them and for benchmarks. What the options do not
 * name comes from stock system properties ({@code -Daeron.*}). READY on standard output when all is up.
 */
final class Servers
{
    private Servers()
    {
    }

    static void driver(final Options options) throws Exception
    {
        final MediaDriver.Context context = driverContext(options);
        options.refuseUnknown();
        serve((barrier) -> MediaDriver.launch(context.terminationHook(barrier::signalAll)));
    }

    static void archive(final Options options) throws Exception
    {
        final Archive.Context archive = Peer.archiveContext(options.required("dir"), options.required("archive-dir"));
        if (options.has("archive-threading"))
        {
            archive.threadingMode(ArchiveThreadingMode.valueOf(options.required("archive-threading")));
        }
        if (options.has("idle"))
        {
            archive.idleStrategySupplier(() -> options.idle("backoff"));
        }
        final boolean withDriver = options.flag("with-driver");
        final MediaDriver.Context driver = withDriver ? driverContext(options) : null;
        options.refuseUnknown();
        serve((barrier) -> withDriver ? ArchivingMediaDriver.launch(driver, archive) : Archive.launch(archive));
    }

    /** An option that is given wins over the property of the same meaning; each agent gets a strategy of its own. */
    private static MediaDriver.Context driverContext(final Options options)
    {
        final MediaDriver.Context context = Peer.driverContext(options.required("dir"));
        if (options.has("threading"))
        {
            context.threadingMode(ThreadingMode.valueOf(options.required("threading")));
        }
        if (options.has("idle"))
        {
            context
                .conductorIdleStrategy(options.idle("backoff"))
                .senderIdleStrategy(options.idle("backoff"))
                .receiverIdleStrategy(options.idle("backoff"))
                .sharedIdleStrategy(options.idle("backoff"))
                .sharedNetworkIdleStrategy(options.idle("backoff"));
        }
        return context;
    }

    private static void serve(final Function<ShutdownSignalBarrier, AutoCloseable> launch) throws Exception
    {
        // The barrier is closed last: it holds the JVM back until the server has closed orderly.
        try (ShutdownSignalBarrier barrier = new ShutdownSignalBarrier(); AutoCloseable server = launch.apply(barrier))
        {
            System.out.println("READY");
            System.out.flush();
            barrier.await();
        }
    }
}
