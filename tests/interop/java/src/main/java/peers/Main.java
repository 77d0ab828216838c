package peers;

import py4j.GatewayServer;

import java.io.IOException;
import java.net.InetAddress;
import java.util.Arrays;

/**
 * Stock Aeron for the tests and benchmarks of another implementation.
 *
 * <pre>
 *   gateway                       a py4j gateway to {@link Peer}; the token comes in PEERS_TOKEN, the port goes to
 *                                 standard output; ends when standard input does, so it never outlives its parent
 *   driver  --dir D               a stock media driver until SIGTERM
 *   archive --dir D --archive-dir A [--with-driver true]
 *                                 a stock archive beside a driver, or both, until SIGTERM
 *   ipc-pub | ipc-sub | record    loads; each prints one JSON object
 *   verified-pub | verified-sub   a stream of messages that check themselves, see {@link Verified}
 * </pre>
 */
public final class Main
{
    private Main()
    {
    }

    public static void main(final String[] args) throws Exception
    {
        if (args.length == 0)
        {
            usage();
        }
        final Options options = new Options(Arrays.copyOfRange(args, 1, args.length));
        switch (args[0])
        {
            case "gateway" -> gateway();
            case "driver" -> Servers.driver(options);
            case "archive" -> Servers.archive(options);
            case "ipc-pub" -> Load.publish(options);
            case "ipc-sub" -> Load.subscribe(options);
            case "record" -> Load.record(options);
            case "verified-pub" -> Verified.publish(options);
            case "verified-sub" -> Verified.subscribe(options);
            default -> usage();
        }
    }

    private static void usage()
    {
        System.err.println("usage: gateway | driver | archive | ipc-pub | ipc-sub | record | verified-pub | " +
            "verified-sub  [--name value]...");
        System.exit(2);
    }

    private static void gateway() throws IOException
    {
        final InetAddress loopback = InetAddress.getLoopbackAddress();
        final GatewayServer server = new GatewayServer.GatewayServerBuilder(new Peer())
            .javaPort(0)
            .javaAddress(loopback)
            .authToken(System.getenv("PEERS_TOKEN"))
            .build();
        server.start();
        System.out.println(server.getListeningPort());
        System.out.flush();
        while (System.in.read() >= 0)
        {
            Thread.onSpinWait();
        }
        // Exit, and not return: a stock driver or client which a test left open must not keep the JVM.
        System.exit(0);
    }
}
