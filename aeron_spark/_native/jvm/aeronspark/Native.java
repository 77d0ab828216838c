package aeronspark;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;

/** Functions of reader.c and follow.c, in the library that this jar carries: load() it first. Handles belong to one thread at a time. */
final class Native {
    static final int POSITION = 0;
    static final int NEXT_POSITION = 1;
    static final int RESERVED_VALUE = 2;
    static final int SESSION_ID = 3;
    static final int STREAM_ID = 4;
    static final int TERM_ID = 5;
    static final int TERM_OFFSET = 6;
    static final int FLAGS = 7;
    static final int VALUE_OFFSET = 8;
    static final int VALUE = 9;
    static final int TIME_NS = 10;
    static final int TIME_US = 11;
    static final int TIME_IS_NULL = 12;
    static final int VALUE_END = 13;

    /** Some message or value is not as it should be, and no error: Python's reader decides what becomes of it. */
    static final int NOT_PLAIN = -9;

    private static final int NO_MEMORY = -8;
    private static final int NO_PROGRAM = -10;

    private static final String ANOTHER_FOLDER = "name another folder by -Djava.io.tmpdir=... in "
        + "spark.executor.extraJavaOptions, for local Spark in spark.driver.extraJavaOptions";

    private static boolean isLoaded;

    private Native() {
    }

    /** Loads the library. Where that fails the next task tries again: room in a folder comes and goes. */
    static synchronized void load() {
        if (isLoaded) {
            return;
        }
        String folder = System.getProperty("java.io.tmpdir");
        try (InputStream library = Native.class.getResourceAsStream("libaeron_spark_jni.so")) {
            if (library == null) {
                throw new IllegalStateException("the jar of aeron_spark holds no native library: build it again by make build");
            }
            Path file = Files.createTempFile(Path.of(folder), "aeron_spark_jni", ".so");
            try {
                Files.copy(library, file, StandardCopyOption.REPLACE_EXISTING);
                System.load(file.toString());
                isLoaded = true;
            } finally {
                Files.deleteIfExists(file);
            }
        } catch (IOException | InvalidPathException error) { // also of a name that Java's locale cannot have
            throw new AeronException(AeronException.STORAGE, "the native library of aeron_spark cannot be written into "
                + folder + ": " + error + "; make room there, or " + ANOTHER_FOLDER);
        } catch (UnsatisfiedLinkError error) {
            throw new AeronException(AeronException.USAGE, "the native library of aeron_spark cannot be loaded: "
                + error.getMessage() + "; where " + folder + " is mounted noexec, " + ANOTHER_FOLDER
                + "; on another platform than the jar's, use the jar of that platform's wheel");
        }
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    /** A result of reader.c; throws the error that one below zero stands for. */
    static long checked(long result) {
        if (result < 0) {
            throw failure(result);
        }
        return result;
    }

    /** The error of this thread's last call. */
    static AeronException failure(long result) {
        if (result == NO_MEMORY) {
            return new AeronException(AeronException.INTERNAL, "no memory for the columns of a batch: lower rowsPerBatch or "
                + "bytesPerBatch, or leave executors more beside the heap by spark.executor.memoryOverhead");
        }
        if (result == NO_PROGRAM) {
            return new AeronException(AeronException.INTERNAL, "the SBE plan of the Python package is not one of this jar: "
                + Version.ADVICE);
        }
        return new AeronException((int) result, new String(errorText(), StandardCharsets.UTF_8));
    }

    static native byte[] errorText();

    static native boolean exists(byte[] path);

    static native long openFolder(byte[] path, byte[] aeronDir, int checksum, boolean readsCounters);

    static native void closeFolder(long folder);

    static native int extent(long folder, long recordingId, long[] found);

    static native int recording(long folder, long recordingId, long[] numbers, byte[][] texts);

    static native long openRows(long folder, long recordingId, long start, long end, long limit, int mask, int rowCapacity,
        int byteCapacity, int valueCapacity, long reservedUnitNs, boolean isText);

    /** Closes files; the columns stay until closeRows. */
    static native void endRows(long rows);

    static native void closeRows(long rows);

    static native long address(long rows, int column);

    static native long position(long rows);

    static native byte[] doubt(long rows);

    static native int next(long rows);

    static native long openSbe(byte[] program, byte[] wanted);

    static native void closeSbe(long sbe);

    static native int decode(long sbe, long rows);

    static native long sbeArray(long sbe);

    static native long sbePayloads(long sbe);

    static native long active(long folder, long[] ids);

    static native int extents(long folder, long[] ids, long[] found);

    static native long advance(long folder, long recordingId, long from, long limit);

    static native int timeReach(long folder, long recordingId, long[] found);
}
