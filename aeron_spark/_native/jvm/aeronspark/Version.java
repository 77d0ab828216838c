package aeronspark;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;

/** The version of this jar: that of the Python package that carries it. */
final class Version {
    static final String TEXT = read();
    static final String ADVICE = "take the jar that aeron_spark.spark.jvm.jar() of the Python package names";

    private Version() {
    }

    /** Throws where the Python package that has planned a read is of another version. */
    static void check(String planned) {
        if (!TEXT.equals(planned)) {
            throw new IllegalStateException("the jar of aeron_spark is of version " + TEXT + ", and the Python package that plans of "
                + planned + ": " + ADVICE);
        }
    }

    private static String read() {
        try (InputStream text = Version.class.getResourceAsStream("version")) {
            return new String(text.readAllBytes(), StandardCharsets.UTF_8).strip();
        } catch (IOException error) {
            throw new IllegalStateException("the jar of aeron_spark cannot be read: " + error, error);
        }
    }
}
