package leeward.wait;

import java.util.Map;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.apache.storm.policy.IWaitStrategy;

/**
 * How an executor waits for work: it looks each half millisecond, and less often once none has come for about a
 * second.
 *
 * <p>Storm's progressive strategy first looks a thousand times in quick succession. At a thousand tuples per second even
 * two quick looks are half of all: tuples come a millisecond apart, each begins the looking anew, and each look is a
 * system call.
 *
 * <p>Nobody wakes a Storm executor, so each one that is idle would look for work two thousand times a second, and so
 * would each warm task. Here it is 250 times; the first tuple after a second of silence waits up to 4 ms for it. No
 * longer, as markers pass through warm tasks as well, and others wait for those. A spout is different: each look is a
 * message to its process and back, and nobody waits behind it. After five seconds without a tuple it is asked 100 times
 * a second.
 *
 * <p>Where processors are scarce each look takes one from somebody who works, and finds little: then all look 250 times
 * a second, and find more at a time.
 */
public final class PatientWait implements IWaitStrategy {
    static final int LONG_COUNT = 2_000;
    static final int SPOUT_COUNT = 3_000;
    private static final long SHORT_NS = 500_000;
    private static final long LONG_MS = 4;
    private static final long SPOUT_MS = 10;

    private final BooleanSupplier scarce;
    private int last = LONG_COUNT;

    /** Storm's way. */
    public PatientWait() {
        this(Processors::scarce);
    }

    PatientWait(BooleanSupplier scarce) {
        this.scarce = scarce;
    }

    @Override
    public void prepare(Map<String, Object> conf, WaitSituation situation) {
        last = situation == WaitSituation.SPOUT_WAIT ? SPOUT_COUNT : LONG_COUNT;
    }

    @Override
    public int idle(int idleCounter) throws InterruptedException {
        if (idleCounter >= LONG_COUNT || scarce.getAsBoolean()) {
            Thread.sleep(idleCounter < SPOUT_COUNT ? LONG_MS : SPOUT_MS);
        } else {
            LockSupport.parkNanos(SHORT_NS);
        }
        return Math.min(idleCounter + 1, last);
    }
}
