package leeward.plugin;

import java.util.Map;
import java.util.Set;
import org.apache.storm.scheduler.ExecutorDetails;
import org.apache.storm.scheduler.WorkerSlot;

/** What one pass does with one topology. */
sealed interface Verdict {

    /** The plan holds: place the topology exactly so. */
    record Fit(PlacementPlan plan, Map<WorkerSlot, Set<ExecutorDetails>> slots) implements Verdict {
    }

    /**
     * There is a plan, but it cannot be followed.
     *
     * @param slotsLost how many slots of the plan hold executors that run nowhere
     */
    record Misfit(String reason, int slotsLost) implements Verdict {
    }

    /** The plan cannot be followed in this pass but probably in the next: leave the topology as it is. */
    record Wait(String reason) implements Verdict {
    }

    /** The topology has no plan: it is none of Leeward's. */
    record Unplanned() implements Verdict {
    }

    /** Whether there is a plan is not known yet, as ZooKeeper has not been read since Nimbus started. */
    record Unknown() implements Verdict {
    }
}
