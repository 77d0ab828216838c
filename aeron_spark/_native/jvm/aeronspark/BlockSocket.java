package aeronspark;

import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.apache.spark.TaskContext;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Where a task's Python worker fetches blocks: a socket in a folder that none but its user enters, both removed when it came.
 * The kernel holds what is on its way, bounds it, and ends the waits of either side when the other has ended.
 */
final class BlockSocket implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger("aeron");
    /** A worker imports what it needs first. One that has not come by then cannot, like the others of this executor. */
    private static final long PATIENCE_NS = TimeUnit.SECONDS.toNanos(30);
    private static final int STEP_MS = 100;
    private static final String ADVICE = ": rows go to Python through Spark, which is slower. ";

    private static volatile boolean isGivenUp;

    private final ServerSocketChannel server = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
    private Path folder;
    private Path file;
    private SocketChannel worker;

    private BlockSocket() throws IOException {
    }

    /** Null where there is none. */
    static BlockSocket open() {
        if (isGivenUp) {
            return null;
        }
        BlockSocket socket = null;
        try {
            socket = new BlockSocket();
            socket.bind();
            return socket;
        } catch (IOException | InvalidPathException | UnsupportedOperationException error) {
            if (socket != null) {
                socket.close();
            }
            giveUp("no socket can be made in " + System.getProperty("java.io.tmpdir") + ": " + error + ADVICE
                + "Name another folder, of a short path, by -Djava.io.tmpdir=... in spark.executor.extraJavaOptions");
            return null;
        }
    }

    private void bind() throws IOException {
        folder = Files.createTempDirectory(Path.of(System.getProperty("java.io.tmpdir")), "aeron-rows-");
        file = folder.resolve("rows");
        server.bind(UnixDomainSocketAddress.of(file), 1).configureBlocking(false);
    }

    byte[] name() {
        return Native.bytes(file.toString());
    }

    /** Waits for the worker; false where it does not come. A task that is killed waits no longer. */
    boolean accept() {
        TaskContext task = TaskContext.get();
        long deadline = System.nanoTime() + PATIENCE_NS;
        try (Selector selector = Selector.open()) {
            server.register(selector, SelectionKey.OP_ACCEPT);
            while (worker == null && !isInterrupted(task)) {
                if (System.nanoTime() - deadline > 0) {
                    giveUp("the Python worker did not come to " + file + ADVICE
                        + "Give executors and their Python workers one user and one " + System.getProperty("java.io.tmpdir"));
                    return false;
                }
                selector.select(STEP_MS);
                worker = server.accept();
            }
        } catch (IOException error) {
            LOG.warn("a task's socket failed" + ADVICE, error);
        }
        removeName();
        return worker != null;
    }

    private static boolean isInterrupted(TaskContext task) {
        return Thread.currentThread().isInterrupted() || task != null && task.isInterrupted();
    }

    private static void giveUp(String why) {
        isGivenUp = true;
        LOG.warn(why);
    }

    /** Waits for room; false where the worker is gone. */
    boolean send(ByteBuffer... parts) {
        try {
            while (parts[parts.length - 1].hasRemaining() || parts[0].hasRemaining()) {
                worker.write(parts);
            }
            return true;
        } catch (IOException gone) {
            return false;
        }
    }

    @Override
    public void close() {
        try {
            if (worker != null) {
                worker.close();
            }
            server.close();
        } catch (IOException error) {
            LOG.warn("a task's socket cannot be closed", error);
        }
        removeName();
    }

    private void removeName() {
        if (folder == null) {
            return;
        }
        try {
            Files.deleteIfExists(file);
            Files.deleteIfExists(folder);
        } catch (IOException error) {
            LOG.warn("what is left of a task's socket cannot be removed", error);
        }
    }
}
