package leeward.plugin;

import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import org.apache.storm.scheduler.Cluster;
import org.apache.storm.scheduler.SchedulerAssignment;
import org.apache.storm.scheduler.SupervisorDetails;
import org.apache.storm.scheduler.TopologyDetails;
import org.apache.storm.scheduler.WorkerSlot;

/**
 * The ports that supervisors offer, remembered from pass to pass.
 *
 * <p>Nimbus leaves the ports of dead executors out of a supervisor's ports. The supervisor still offers them, and
 * starts a dead worker there again. So a port that was offered in an earlier pass counts as offered as long as its
 * supervisor is there. It is forgotten when it is missing in a pass in which every executor lives, as Nimbus withholds
 * nothing then.
 */
final class Ports {
    /**
     * What is remembered of one supervisor.
     *
     * @param complete a pass was seen in which Nimbus withheld nothing
     */
    private record Offer(Set<Integer> ports, boolean complete) {
    }

    private final Map<String, Offer> offers = new HashMap<>();
    /** The topology that had each slot after the pass before. */
    private final Map<WorkerSlot, String> users = new HashMap<>();

    /** Takes in what Nimbus shows at the beginning of a pass. */
    void observe(Cluster cluster) {
        boolean complete = cluster.getTopologies().getTopologies().stream()
            .allMatch(topology -> cluster.getUnassignedExecutors(topology).isEmpty());
        Map<String, Offer> before = Map.copyOf(offers);
        offers.clear();
        for (SupervisorDetails supervisor : cluster.getSupervisors().values()) {
            Offer known = before.getOrDefault(supervisor.getId(), new Offer(Set.of(), false));
            Set<Integer> ports = new TreeSet<>(supervisor.getAllPorts());
            if (!complete) {
                ports.addAll(known.ports);
            }
            offers.put(supervisor.getId(), new Offer(ports, complete || known.complete));
        }
    }

    /** Remembers at the end of a pass which topology has which slot. */
    void remember(Cluster cluster) {
        users.clear();
        for (SchedulerAssignment assignment : cluster.getAssignments().values()) {
            assignment.getSlots().forEach(slot -> users.put(slot, assignment.getTopologyId()));
        }
    }

    /** The ports that count as offered, ascending. */
    Set<Integer> of(SupervisorDetails supervisor) {
        Offer offer = offers.get(supervisor.getId());
        return new TreeSet<>(offer == null ? supervisor.getAllPorts() : offer.ports);
    }

    /**
     * Takes a plan's word that the supervisor offers a port: Nimbus may have withheld it in every pass since this
     * plugin was started. False if a complete pass has shown that it does not.
     */
    boolean accept(SupervisorDetails supervisor, int port) {
        Offer offer = offers.get(supervisor.getId());
        if (offer == null) {
            return false;
        }
        if (!offer.complete) {
            offer.ports.add(port);
        }
        return offer.ports.contains(port);
    }

    /** The other topology whose dead executors were in this slot, and which is still there. */
    Optional<String> user(WorkerSlot slot, TopologyDetails topology, Cluster cluster) {
        return Optional.ofNullable(users.get(slot)).filter(user -> !user.equals(topology.getId()))
            .filter(user -> {
                TopologyDetails other = cluster.getTopologies().getById(user);
                return other != null && !cluster.getUnassignedExecutors(other).isEmpty();
            });
    }
}
