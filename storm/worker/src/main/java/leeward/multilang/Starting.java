package leeward.multilang;

import java.util.concurrent.atomic.AtomicInteger;

/**
 * The components of a worker that are starting.
 *
 * <p>What a worker keeps for ever it makes while it starts: 10 MB and more of settings, classes and buffers. Java's
 * collector copies all that in each of its first collections, until it takes it for old: pauses of 20 to 60 ms in the
 * first minute, with the stream going on. So it is made to take it for old when the last component has started and has
 * nothing to do yet. Later pauses are below 6 ms.
 */
final class Starting {
    static final Starting HERE = new Starting(System::gc);

    private final AtomicInteger components = new AtomicInteger();
    private final Runnable collect;

    Starting(Runnable collect) {
        this.collect = collect;
    }

    /** One starts. */
    void begin() {
        components.incrementAndGet();
    }

    /** One has started, or failed to. */
    void end() {
        if (components.decrementAndGet() == 0) {
            collect.run();
        }
    }
}
