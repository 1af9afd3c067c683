package leeward.plugin;

import java.util.List;
import java.util.Map;
import java.util.Optional;
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
     * @param plan the plan; none if the znode's content is unreadable
     * @param lost the plan's slots that hold executors which run nowhere
     */
    record Misfit(String reason, Optional<PlacementPlan> plan, List<PlacementPlan.Slot> lost) implements Verdict {
        Misfit(String reason) {
            this(reason, Optional.empty(), List.of());
        }
    }

    /** The topology has no plan: it is none of Leeward's. */
    record Unplanned() implements Verdict {
    }

    /** The topology has no plan yet, and asks to wait for its first one; nothing of it is placed. */
    record Waiting() implements Verdict {
    }

    /** Whether there is a plan is not known yet, as ZooKeeper has not been read since Nimbus started. */
    record Unknown() implements Verdict {
    }
}
