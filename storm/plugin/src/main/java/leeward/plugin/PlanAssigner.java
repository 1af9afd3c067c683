package leeward.plugin;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.apache.storm.scheduler.Cluster;
import org.apache.storm.scheduler.DefaultScheduler;
import org.apache.storm.scheduler.EvenScheduler;
import org.apache.storm.scheduler.ExecutorDetails;
import org.apache.storm.scheduler.IScheduler;
import org.apache.storm.scheduler.SchedulerAssignment;
import org.apache.storm.scheduler.Topologies;
import org.apache.storm.scheduler.TopologyDetails;
import org.apache.storm.scheduler.WorkerSlot;

/**
 * One scheduling pass as a function of the topologies, the cluster and the wishes; no clock, no input or output.
 *
 * <p>What happens to a topology, by its {@link Verdict}: <ul>
 * <li>fits: placed exactly, touching only slots that differ (a worker whose executors stay is not restarted);
 * <li>planned, but the plan does not fit: executors that run stay where they are, the others are spread evenly;
 * <li>not planned yet, and the topology asks to wait for its first plan: nothing, until it has waited long enough;
 * <li>not planned: Storm's default scheduler.</ul>
 */
final class PlanAssigner {
    /** In a topology's configuration: seconds from its submission for which it waits for its first plan. */
    static final String FIRST_PLAN = "leeward.first_plan.secs";

    private static final String STATUS = "leeward: ";

    private final Topologies topologies;
    private final Cluster cluster;
    private final Setbacks setbacks;
    private final Ports ports;
    /** Ids of topologies that have had slots; during a rebalance Storm hides them. */
    private final Set<String> placed;

    /** A pass; the last three are remembered from the passes before, and this one adds its own. */
    PlanAssigner(Topologies topologies, Cluster cluster, Setbacks setbacks, Ports ports, Set<String> placed) {
        this.topologies = topologies;
        this.cluster = cluster;
        this.setbacks = setbacks;
        this.ports = ports;
        this.placed = placed;
    }

    /**
     * Judges all topologies, in the order of their ids.
     *
     * @param wishes by topology name; empty as long as ZooKeeper has not been read
     */
    Map<String, Verdict> verdicts(Optional<Map<String, Wish>> wishes) {
        PlanCheck check = new PlanCheck(cluster, setbacks, ports);
        setbacks.retain(Set.copyOf(topologies.getAllIds()));
        placed.retainAll(topologies.getAllIds());
        placed.addAll(cluster.getAssignments().keySet());
        Map<String, Verdict> verdicts = new TreeMap<>();
        for (TopologyDetails topology : inOrder()) {
            Verdict verdict = wishes.isEmpty() ? new Verdict.Unknown()
                : check.verdict(topology, wishes.get().get(topology.getName()));
            boolean planned = verdict instanceof Verdict.Fit || verdict instanceof Verdict.Misfit;
            verdicts.put(topology.getId(), !planned && waits(topology) ? new Verdict.Waiting() : verdict);
        }
        return verdicts;
    }

    /** It asks to wait for its first plan, has not waited for so long, and was not placed before. */
    private boolean waits(TopologyDetails topology) {
        return topology.getConf().get(FIRST_PLAN) instanceof Number secs && topology.getUpTime() < secs.doubleValue()
            && !placed.contains(topology.getId());
    }

    /** Carries the verdicts out: first the plans that fit, then everything else in the slots that are left. */
    void carryOut(Map<String, Verdict> verdicts) {
        Map<String, Map<WorkerSlot, Set<ExecutorDetails>>> placements = new TreeMap<>();
        verdicts.forEach((id, verdict) -> {
            if (verdict instanceof Verdict.Fit fit) {
                placements.put(id, fit.slots());
            }
        });
        place(placements);

        List<TopologyDetails> unplanned = new ArrayList<>();
        for (TopologyDetails topology : inOrder()) {
            Verdict verdict = verdicts.get(topology.getId());
            if (verdict instanceof Verdict.Unplanned) {
                unplanned.add(topology);
            } else if (!(verdict instanceof Verdict.Waiting) && !cluster.getUnassignedExecutors(topology).isEmpty()) {
                Verdict.Misfit misfit = verdict instanceof Verdict.Misfit given ? given : new Verdict.Misfit("");
                fill(topology, misfit.lost());
                misfit.plan().ifPresent(plan -> setbacks.givenUp(topology.getId(), plan, misfit.reason()));
            }
        }
        delegate(new DefaultScheduler(), unplanned, Set.of());
        placed.addAll(cluster.getAssignments().keySet());
        verdicts.forEach(this::report);
    }

    /**
     * Places the executors of a planned topology that run nowhere, and touches no other.
     *
     * @param lost the slots where the plan wants them; their nodes are avoided, as they may be dying
     */
    private void fill(TopologyDetails topology, List<PlacementPlan.Slot> lost) {
        int alive = present(topology.getId()).size();
        if (alive == 0) {
            delegate(new EvenScheduler(), List.of(topology), Set.of());
            return;
        }
        int workers = Math.max(topology.getNumWorkers(), alive + Math.max(1, lost.size()));
        List<TopologyDetails> roomy = List.of(like(topology, workers, topology.getExecutorToComponent()));
        delegate(new EvenScheduler(), roomy, lost.stream().map(PlacementPlan.Slot::node).collect(Collectors.toSet()));
        if (!cluster.getUnassignedExecutors(topology).isEmpty()) {
            delegate(new EvenScheduler(), roomy, Set.of());
        }
    }

    /**
     * Gives topologies exactly these placements. All slots are freed before any is taken, so topologies may hand slots
     * to each other.
     */
    private void place(Map<String, Map<WorkerSlot, Set<ExecutorDetails>>> placements) {
        placements.forEach((id, wanted) -> present(id).forEach((slot, executors) -> {
            if (!executors.equals(wanted.get(slot))) {
                cluster.freeSlot(slot);
            }
        }));
        placements.forEach((id, wanted) -> {
            Set<WorkerSlot> kept = present(id).keySet();
            wanted.forEach((slot, executors) -> {
                if (!kept.contains(slot)) {
                    cluster.assign(slot, id, executors);
                }
            });
        });
    }

    /** The present placement of a topology; nothing during its rebalance, as Storm hides it then. A copy. */
    private Map<WorkerSlot, Set<ExecutorDetails>> present(String id) {
        return placement(cluster.getAssignmentById(id));
    }

    private static Map<WorkerSlot, Set<ExecutorDetails>> placement(SchedulerAssignment assignment) {
        Map<WorkerSlot, Set<ExecutorDetails>> slots = new HashMap<>();
        if (assignment != null) {
            assignment.getExecutorToSlot()
                .forEach((executor, slot) -> slots.computeIfAbsent(slot, key -> new HashSet<>()).add(executor));
        }
        return slots;
    }

    /**
     * Lets one of Storm's schedulers place some topologies.
     *
     * <p>Storm's schedulers work on every topology of the cluster that looks incomplete to them, whatever topologies
     * they are given: a managed one on fewer slots than its number of workers would be torn apart. So they get a copy
     * of the cluster, in which the others are shown as complete. They must be in it: the copy constructor drops the
     * assignments of topologies it is not given, and their slots would count as free.
     *
     * @param avoid hosts not to use
     */
    private void delegate(IScheduler scheduler, List<TopologyDetails> subjects, Set<String> avoid) {
        if (subjects.stream().noneMatch(cluster::needsScheduling)) {
            return;
        }
        Map<String, TopologyDetails> shown = new HashMap<>();
        for (TopologyDetails topology : topologies.getTopologies()) {
            complete(topology).ifPresent(stand -> shown.put(stand.getId(), stand));
        }
        subjects.forEach(subject -> shown.put(subject.getId(), subject));
        Topologies all = new Topologies(shown);
        Cluster copy = new Cluster(cluster, all);
        avoid.forEach(copy::blacklistHost);
        scheduler.schedule(all, copy);

        Map<String, Map<WorkerSlot, Set<ExecutorDetails>>> placements = new TreeMap<>();
        for (TopologyDetails subject : subjects) {
            placements.put(subject.getId(), placement(copy.getAssignmentById(subject.getId())));
        }
        place(placements);
    }

    /** A stand-in for a topology that wants no more than it has; none if it has nothing. */
    private Optional<TopologyDetails> complete(TopologyDetails topology) {
        Map<WorkerSlot, Set<ExecutorDetails>> present = present(topology.getId());
        Map<ExecutorDetails, String> executors = new HashMap<>(topology.getExecutorToComponent());
        executors.keySet().retainAll(placement(cluster.getAssignmentById(topology.getId())).values().stream()
            .collect(HashSet::new, Set::addAll, Set::addAll));
        return present.isEmpty() ? Optional.empty() : Optional.of(like(topology, present.size(), executors));
    }

    private static TopologyDetails like(TopologyDetails topology, int workers, Map<ExecutorDetails, String> executors) {
        return new TopologyDetails(topology.getId(), topology.getConf(), topology.getTopology(), workers, executors,
            topology.getTopologySubmitter());
    }

    private void report(String id, Verdict verdict) {
        if (verdict instanceof Verdict.Fit fit) {
            status(id, "epoch " + fit.plan().epoch() + " placed");
        } else if (verdict instanceof Verdict.Misfit misfit) {
            status(id, "default scheduler: " + misfit.reason());
        } else if (verdict instanceof Verdict.Waiting) {
            status(id, "waits for its first plan");
        } else if (verdict instanceof Verdict.Unplanned && ours(cluster.getStatus(id))) {
            // Nimbus keeps statuses: without this a withdrawn plan would be reported as placed for ever
            status(id, "default scheduler: no plan");
        }
    }

    private static boolean ours(String status) {
        return status != null && status.startsWith(STATUS);
    }

    /** Sets a status only if it is another, as Storm logs each time. */
    private void status(String id, String text) {
        if (!(STATUS + text).equals(cluster.getStatus(id))) {
            cluster.setStatus(id, STATUS + text);
        }
    }

    private List<TopologyDetails> inOrder() {
        return topologies.getTopologies().stream()
            .sorted((a, b) -> a.getId().compareTo(b.getId())).toList();
    }
}
