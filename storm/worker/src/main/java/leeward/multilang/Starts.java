package leeward.multilang;

import java.util.ArrayDeque;
import java.util.Deque;

/** How often a process may be started again: so many times within so long. Not thread-safe. */
final class Starts {
    private final int most;
    private final long withinNs;
    private final Deque<Long> recent = new ArrayDeque<>();

    Starts(int most, long withinNs) {
        this.most = most;
        this.withinNs = withinNs;
    }

    /** Counts one more start at this time; false if there were too many before it. */
    boolean another(long now) {
        while (!recent.isEmpty() && now - recent.peekFirst() >= withinNs) {
            recent.removeFirst();
        }
        if (recent.size() >= most) {
            return false;
        }
        recent.addLast(now);
        return true;
    }
}
