package aeronspark;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Which engine is taken and why: one line when the answer is another one than the last. */
final class EngineLog {
    private static final Logger LOG = LoggerFactory.getLogger("aeron");

    private String logged = "";

    synchronized void info(String line) {
        if (!line.equals(logged)) {
            logged = line;
            LOG.info(line);
        }
    }
}
