package leeward.wait;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Collections;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import org.apache.storm.policy.IWaitStrategy;
import org.junit.jupiter.api.Test;

class PatientWaitTest {
    private static long nanos(int counter, boolean scarce) throws InterruptedException {
        LockSupport.parkNanos(1); // ends at once if somebody has released this thread before
        long best = Long.MAX_VALUE;
        for (int round = 0; round < 5; round++) {
            long began = System.nanoTime();
            new PatientWait(() -> scarce).idle(counter);
            best = Math.min(best, System.nanoTime() - began);
        }
        return best;
    }

    @Test
    void waitsLongerTheLongerNothingCame() throws Exception {
        assertTrue(nanos(0, false) >= 450_000);
        assertTrue(nanos(PatientWait.LONG_COUNT - 1, false) < 3_900_000);
        assertTrue(nanos(PatientWait.LONG_COUNT, false) >= 3_900_000);
        assertTrue(nanos(PatientWait.SPOUT_COUNT - 1, false) < 9_000_000);
        assertTrue(nanos(PatientWait.SPOUT_COUNT, false) >= 9_900_000);
    }

    @Test
    void waitsLongWhereProcessorsAreScarce() throws Exception {
        assertTrue(nanos(0, true) >= 3_900_000);
        assertTrue(nanos(PatientWait.SPOUT_COUNT, true) >= 9_900_000);
    }

    @Test
    void seesThatProcessorsAreScarce() throws Exception {
        AtomicBoolean busy = new AtomicBoolean(true);
        for (int i = 0; i < 2 * Runtime.getRuntime().availableProcessors(); i++) {
            Thread thread = new Thread(() -> {
                while (busy.get()) {
                    Thread.yield();
                }
            });
            thread.setDaemon(true);
            thread.start();
        }
        try {
            long until = System.nanoTime() + 20_000_000_000L;
            while (!Processors.scarce() && System.nanoTime() < until) {
                Thread.sleep(100);
            }
            assertTrue(Processors.scarce());
        } finally {
            busy.set(false);
        }
    }

    @Test
    void countsUpToItsEndAndNoFurther() throws Exception {
        IWaitStrategy strategy = new PatientWait();
        strategy.prepare(Collections.emptyMap(), IWaitStrategy.WaitSituation.BOLT_WAIT);
        assertEquals(1, strategy.idle(0));
        assertEquals(PatientWait.LONG_COUNT, strategy.idle(PatientWait.LONG_COUNT - 1));
        assertEquals(PatientWait.LONG_COUNT, strategy.idle(PatientWait.LONG_COUNT));
    }

    @Test
    void onlySpoutsAreLeftAloneForLonger() throws Exception {
        IWaitStrategy strategy = new PatientWait();
        strategy.prepare(Collections.emptyMap(), IWaitStrategy.WaitSituation.SPOUT_WAIT);
        assertEquals(PatientWait.LONG_COUNT + 1, strategy.idle(PatientWait.LONG_COUNT));
        assertEquals(PatientWait.SPOUT_COUNT, strategy.idle(PatientWait.SPOUT_COUNT));
        strategy.prepare(Collections.emptyMap(), IWaitStrategy.WaitSituation.BACK_PRESSURE_WAIT);
        assertEquals(PatientWait.LONG_COUNT, strategy.idle(PatientWait.LONG_COUNT));
    }

    @Test
    void endsWhenItIsInterrupted() {
        Thread.currentThread().interrupt();
        assertThrows(InterruptedException.class, () -> new PatientWait().idle(PatientWait.LONG_COUNT));
    }
}
