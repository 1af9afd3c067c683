package leeward.plugin;

import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
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
 * Whether plans fit the cluster. Changes nothing in it.
 *
 * <p>A plan fits iff it is for the running topology; every executor is a single task and listed once; every node is a
 * known supervisor host that is not blacklisted; every port is one of its ports ({@link Ports}: also one that Nimbus
 * withholds while executors there are dead); no slot is another topology's. A first placement moves nothing: a
 * supervisor halts if it gets another assignment while it still fetches a topology's files.
 */
final class PlanCheck {
    private final Cluster cluster;
    private final Setbacks setbacks;
    private final Ports ports;
    /** Who has a slot, once the plans that fitted so far are carried out. */
    private final Map<WorkerSlot, String> owners = new HashMap<>();

    /** The plan does not fit; the message is the reason. */
    private static final class NoFit extends Exception {
        NoFit(String reason) {
            super(reason);
        }
    }

    PlanCheck(Cluster cluster, Setbacks setbacks, Ports ports) {
        this.cluster = cluster;
        this.setbacks = setbacks;
        this.ports = ports;
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
            return new Verdict.Misfit(unreadable.reason());
        }
        PlacementPlan plan = (PlacementPlan) wish;
        try {
            Map<WorkerSlot, Set<ExecutorDetails>> slots = slots(topology, plan);
            if (plan.epoch() == PlacementPlan.FIRST && runsElsewhere(topology, slots)) {
                throw new NoFit("plan is a first placement, and Storm has placed the topology otherwise");
            }
            if (cluster.getUsedSlotsByTopologyId(topology.getId()).isEmpty()) {
                setbacks.forget(topology.getId()); // everything has to be placed anyway, as in a rebalance
            }
            Optional<String> tooEarly = setbacks.fits(topology.getId(), plan);
            if (tooEarly.isPresent()) {
                return new Verdict.Misfit(tooEarly.get(), Optional.of(plan), lost(topology, plan));
            }
            owners.values().removeIf(topology.getId()::equals);
            slots.keySet().forEach(slot -> owners.put(slot, topology.getId()));
            return new Verdict.Fit(plan, slots);
        } catch (NoFit e) {
            setbacks.misfits(topology.getId());
            return new Verdict.Misfit(e.getMessage(), Optional.of(plan), lost(topology, plan));
        }
    }

    /** Some executor has another slot than the one that is wanted. */
    private boolean runsElsewhere(TopologyDetails topology, Map<WorkerSlot, Set<ExecutorDetails>> wanted) {
        SchedulerAssignment present = cluster.getAssignmentById(topology.getId());
        return present != null && wanted.entrySet().stream().anyMatch(slot -> slot.getValue().stream()
            .map(present.getExecutorToSlot()::get).anyMatch(here -> here != null && !here.equals(slot.getKey())));
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
        SupervisorDetails supervisor = supervisor(topology, wanted);
        WorkerSlot slot = new WorkerSlot(supervisor.getId(), wanted.port());
        String owner = owners.getOrDefault(slot, topology.getId());
        if (!supervisor.getAllPorts().contains(wanted.port()) && !owners.containsKey(slot)) {
            owner = ports.user(slot, topology, cluster).orElse(owner);
        }
        if (!owner.equals(topology.getId())) {
            throw new NoFit("plan wants slot " + wanted + ", which topology '" + owner + "' uses");
        }
        return slot;
    }

    /** The supervisor on the wanted node that offers the wanted port; several may run on one host. */
    private SupervisorDetails supervisor(TopologyDetails topology, PlacementPlan.Slot wanted) throws NoFit {
        List<SupervisorDetails> there = cluster.getSupervisorsByHost(wanted.node());
        if (there.isEmpty()) {
            throw new NoFit("plan names unknown node '" + wanted.node() + "'");
        }
        if (cluster.isBlacklistedHost(wanted.node())) {
            throw new NoFit("plan names blacklisted node '" + wanted.node() + "'");
        }
        for (SupervisorDetails supervisor : there) {
            if (ports.of(supervisor).contains(wanted.port())) {
                return supervisor;
            }
        }
        if (there.size() == 1 && homeless(topology).containsAll(wanted.tasks())
            && ports.accept(there.get(0), wanted.port())) {
            return there.get(0);
        }
        throw new NoFit("plan names port " + wanted.port() + ", which node '" + wanted.node() + "' does not offer");
    }

    private List<PlacementPlan.Slot> lost(TopologyDetails topology, PlacementPlan plan) {
        Set<Integer> homeless = homeless(topology);
        return plan.slots().stream().filter(slot -> slot.tasks().stream().anyMatch(homeless::contains)).toList();
    }

    /** The tasks that run nowhere. */
    private Set<Integer> homeless(TopologyDetails topology) {
        Set<Integer> homeless = new HashSet<>();
        cluster.getUnassignedExecutors(topology).forEach(executor -> homeless.add(executor.getStartTask()));
        return homeless;
    }
}
