package leeward.multilang;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** One thread of the worker that looks at all its components' processes every 250 ms. It must never block. */
final class Watch {
    static final long PERIOD_NS = TimeUnit.MILLISECONDS.toNanos(250);

    private static final Logger LOG = LoggerFactory.getLogger(Watch.class);
    private static final List<Child> CHILDREN = new CopyOnWriteArrayList<>();
    private static boolean started;

    private Watch() {
    }

    static synchronized void add(Child child) {
        CHILDREN.add(child);
        if (!started) {
            started = true;
            Executors.newSingleThreadScheduledExecutor(work -> Child.daemon(work, "leeward-watch"))
                .scheduleAtFixedRate(Watch::look, PERIOD_NS, PERIOD_NS, TimeUnit.NANOSECONDS);
        }
    }

    static void remove(Child child) {
        CHILDREN.remove(child);
    }

    private static void look() {
        for (Child child : CHILDREN) {
            try {
                child.look(System.nanoTime());
            } catch (RuntimeException e) {
                LOG.warn("A look at the process of {} failed", child, e);
            }
        }
    }
}
