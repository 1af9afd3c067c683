package leeward.plugin;

import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.storm.scheduler.Cluster;
import org.apache.storm.scheduler.ExecutorDetails;
import org.apache.storm.scheduler.SchedulerAssignment;
import org.apache.storm.scheduler.SupervisorDetails;
import org.apache.storm.scheduler.TopologyDetails;
import org.apache.storm.scheduler.WorkerSlot;

/**
 * Whether plans fit the cluster. Changes nothing.
 *
 * <p>A plan fits iff it is for the running topology; every executor is a single task and listed once; every node is a
 * known supervisor host that is not blacklisted; every port is one of its ports; no slot is another topology's.
 */
final class PlanCheck {
    private final Cluster cluster;
    /** The ports that each supervisor offered in the pass before this one, by supervisor id. */
    private final Map<String, Set<Integer>> portsBefore;
    /** Who has a slot, once the plans that fitted so far are carried out. */
    private final Map<WorkerSlot, String> owners = new HashMap<>();

    /** The plan does not fit, for this reason. */
    private static final class NoFit extends Exception {
        private final boolean passing;

        NoFit(String reason, boolean passing) {
            super(reason);
            this.passing = passing;
        }

        NoFit(String reason) {
            this(reason, false);
        }
    }

    PlanCheck(Cluster cluster, Map<String, Set<Integer>> portsBefore) {
        this.cluster = cluster;
        this.portsBefore = portsBefore;
        for (SchedulerAssignment assignment : cluster.getAssignments().values()) {
            assignment.getSlots().forEach(slot -> owners.put(slot, assignment.getTopologyId()));
        }
    }

    /** Judges one topology; a plan that fits takes its slots, so the order of the calls matters to rivals. */
    Verdict verdict(TopologyDetails topology, Wish wish) {
        if (wish == null) {
            return new Verdict.Unplanned();
        }
        if (wish instanceof Wish.Unreadable unreadable) {
            return new Verdict.Misfit(unreadable.reason(), 1);
        }
        PlacementPlan plan = (PlacementPlan) wish;
        try {
            Map<WorkerSlot, Set<ExecutorDetails>> slots = slots(topology, plan);
            owners.values().removeIf(topology.getId()::equals);
            slots.keySet().forEach(slot -> owners.put(slot, topology.getId()));
            return new Verdict.Fit(plan, slots);
        } catch (NoFit e) {
            return e.passing ? new Verdict.Wait(e.getMessage())
                : new Verdict.Misfit(e.getMessage(), Math.max(1, plan.slotsWith(homelessTasks(topology))));
        }
    }

    private Map<WorkerSlot, Set<ExecutorDetails>> slots(TopologyDetails topology, PlacementPlan plan) throws NoFit {
        if (!plan.topologyId().equals(topology.getId())) {
            throw new NoFit("plan is stale: it is for topology id '" + plan.topologyId() + "'");
        }
        Map<Integer, ExecutorDetails> executors = executors(topology);
        Set<Integer> missing = new TreeSet<>(executors.keySet());
        Map<WorkerSlot, Set<ExecutorDetails>> slots = new LinkedHashMap<>();
        for (PlacementPlan.Slot wanted : plan.slots()) {
            Set<ExecutorDetails> here = new HashSet<>();
            for (int task : wanted.tasks()) {
                if (!missing.remove(task)) {
                    throw new NoFit("plan names unknown task " + task);
                }
                here.add(executors.get(task));
            }
            slots.put(slot(topology, wanted), here);
        }
        if (!missing.isEmpty()) {
            throw new NoFit("plan leaves out tasks " + missing);
        }
        return slots;
    }

    /** The executors by their task. */
    private static Map<Integer, ExecutorDetails> executors(TopologyDetails topology) throws NoFit {
        Map<Integer, ExecutorDetails> executors = new TreeMap<>();
        for (ExecutorDetails executor : topology.getExecutors()) {
            executors.put(executor.getStartTask(), executor);
        }
        for (ExecutorDetails executor : executors.values()) {
            if (executor.getStartTask() != executor.getEndTask()) {
                throw new NoFit("topology has an executor of several tasks, [" + executor.getStartTask() + ", "
                    + executor.getEndTask() + "]");
            }
        }
        return executors;
    }

    private WorkerSlot slot(TopologyDetails topology, PlacementPlan.Slot wanted) throws NoFit {
        WorkerSlot slot = new WorkerSlot(supervisor(wanted).getId(), wanted.port());
        String owner = owners.getOrDefault(slot, topology.getId());
        if (!owner.equals(topology.getId())) {
            throw new NoFit("plan wants slot " + wanted + ", which topology '" + owner + "' uses");
        }
        return slot;
    }

    /** The supervisor on the wanted node that offers the wanted port; several may run on one host. */
    private SupervisorDetails supervisor(PlacementPlan.Slot wanted) throws NoFit {
        List<SupervisorDetails> there = cluster.getSupervisorsByHost(wanted.node());
        if (there.isEmpty()) {
            throw new NoFit("plan names unknown node '" + wanted.node() + "'");
        }
        if (cluster.isBlacklistedHost(wanted.node())) {
            throw new NoFit("plan names blacklisted node '" + wanted.node() + "'");
        }
        for (SupervisorDetails supervisor : there) {
            if (supervisor.getAllPorts().contains(wanted.port())) {
                return supervisor;
            }
        }
        // Storm hides the port of a dead worker for one pass. To place its executors elsewhere now and back here a
        // second later would start them twice.
        boolean hidden = there.stream()
            .anyMatch(s -> portsBefore.getOrDefault(s.getId(), Set.of()).contains(wanted.port()));
        throw hidden ? new NoFit("port of " + wanted + " is withheld for a pass, as its worker died", true)
            : new NoFit("plan names port " + wanted.port() + ", which node '" + wanted.node() + "' does not have");
    }

    private Set<Integer> homelessTasks(TopologyDetails topology) {
        Collection<ExecutorDetails> homeless = cluster.getUnassignedExecutors(topology);
        Set<Integer> tasks = new HashSet<>();
        homeless.forEach(executor -> tasks.add(executor.getStartTask()));
        return tasks;
    }
}
