package aeronspark;

import java.lang.ref.Cleaner;
import java.util.concurrent.atomic.AtomicLong;

/** Memory of C that some thread may still read although its task has ended: it is freed when nothing can reach it any more. */
final class KeptMemory {
    /** Java's collector does not see this memory: each time that so many bytes more are kept, it is asked to run. */
    private static final long BYTES_PER_COLLECTION = 256 << 20;
    private static final Cleaner CLEANER = Cleaner.create();
    private static final AtomicLong KEPT = new AtomicLong();

    private KeptMemory() {
    }

    /**
     * @param owner what each column of the memory holds, and free does not
     * @param bytes about
     */
    static Cleaner.Cleanable keep(Object owner, long bytes, Runnable free) {
        Cleaner.Cleanable kept = CLEANER.register(owner, () -> {
            free.run();
            KEPT.addAndGet(-bytes);
        });
        long all = KEPT.addAndGet(bytes);
        if (all / BYTES_PER_COLLECTION > (all - bytes) / BYTES_PER_COLLECTION) {
            System.gc();
        }
        return kept;
    }
}
