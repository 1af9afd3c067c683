package leeward.plugin;

import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/**
 * Plans that were given up, and how long they have fitted again since; remembered between passes.
 *
 * <p>When a node is lost, the plan does not fit and the executors of that node are placed elsewhere. When the node is
 * back, the plan fits again. To follow it at once would stop these executors again, perhaps for a node that comes and
 * goes. So a plan that was given up has to fit for {@link #PASSES} passes in a row; another plan counts at once.
 */
final class Setbacks {
    /** With passes of a second: longer than ZooKeeper takes to notice a dead supervisor. */
    static final int PASSES = 30;

    private record Setback(PlacementPlan plan, String reason, int calm) {
    }

    private final Map<String, Setback> setbacks = new HashMap<>();

    /** Executors of a topology were placed in spite of its plan. */
    void givenUp(String topologyId, PlacementPlan plan, String reason) {
        Setback before = setbacks.get(topologyId);
        boolean again = before != null && before.plan.equals(plan);
        setbacks.put(topologyId, new Setback(plan, again ? before.reason : reason, 0));
    }

    /** The plan does not fit in this pass, though nothing needed to be done about it. */
    void misfits(String topologyId) {
        setbacks.computeIfPresent(topologyId, (id, setback) -> new Setback(setback.plan, setback.reason, 0));
    }

    /** Counts a pass in which the plan fits; why it shall not be followed yet, or nothing. */
    Optional<String> fits(String topologyId, PlacementPlan plan) {
        Setback setback = setbacks.remove(topologyId);
        if (setback == null || !setback.plan.equals(plan) || setback.calm >= PASSES) {
            return Optional.empty();
        }
        setbacks.put(topologyId, new Setback(plan, setback.reason, setback.calm + 1));
        return Optional.of("plan was given up and has to fit for " + PASSES + " passes first (" + setback.reason + ")");
    }

    void forget(String topologyId) {
        setbacks.remove(topologyId);
    }

    void retain(Set<String> topologyIds) {
        setbacks.keySet().retainAll(topologyIds);
    }
}
