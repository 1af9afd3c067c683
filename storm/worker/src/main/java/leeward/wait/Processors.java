package leeward.wait;

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/** How busy the processors of this machine are, looked at once in a second by whoever asks first. */
final class Processors {
    private static final long PERIOD_NS = TimeUnit.SECONDS.toNanos(1);
    /** Of the processors' time; above it nothing that wants a processor gets one at once. */
    private static final double SCARCE = 0.95;

    private static final OperatingSystemMXBean SYSTEM =
        (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    private static final AtomicLong DUE = new AtomicLong(System.nanoTime());
    private static volatile boolean scarce;

    private Processors() {
    }

    /** Whether hardly any processor time was left in the second before this one. */
    static boolean scarce() {
        long due = DUE.get();
        long now = System.nanoTime();
        if (now - due >= 0 && DUE.compareAndSet(due, now + PERIOD_NS)) {
            scarce = SYSTEM.getSystemCpuLoad() > SCARCE; // of the time since the look before
        }
        return scarce;
    }
}
