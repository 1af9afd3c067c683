package leeward.plugin;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.storm.scheduler.Cluster;
import org.apache.storm.scheduler.ExecutorDetails;
import org.apache.storm.scheduler.SchedulerAssignment;
import org.apache.storm.scheduler.SupervisorDetails;
import org.apache.storm.scheduler.Topologies;
import org.apache.storm.scheduler.TopologyDetails;
import org.apache.storm.scheduler.WorkerSlot;

/**
 * What Nimbus sees at the end of a pass, as JSON for the scheduler service. The same facts give the same bytes.
 *
 * <p>An executor whose supervisor is gone has neither node nor port, even if its worker still runs.
 */
final class Snapshot {
    static final long VERSION = 1;

    private Snapshot() {
    }

    static String of(Topologies topologies, Cluster cluster, Ports ports, Map<String, Verdict> verdicts) {
        Map<String, Object> snapshot = new LinkedHashMap<>();
        snapshot.put("version", VERSION);
        snapshot.put("supervisors", cluster.getSupervisors().values().stream()
            .sorted(Comparator.comparing(SupervisorDetails::getId))
            .map(supervisor -> supervisor(supervisor, cluster, ports)).toList());
        snapshot.put("topologies", topologies.getTopologies().stream()
            .sorted(Comparator.comparing(TopologyDetails::getId))
            .map(topology -> topology(topology, cluster, verdicts.get(topology.getId()))).toList());
        return Json.write(snapshot);
    }

    private static Map<String, Object> supervisor(SupervisorDetails supervisor, Cluster cluster, Ports ports) {
        Map<String, Object> json = new LinkedHashMap<>();
        json.put("id", supervisor.getId());
        json.put("node", supervisor.getHost());
        json.put("ports", ports.of(supervisor));
        json.put("meta", supervisor.getSchedulerMeta() instanceof Map<?, ?> meta ? new TreeMap<>(meta) : Map.of());
        json.put("blacklisted", cluster.isBlackListed(supervisor.getId()));
        return json;
    }

    private static Map<String, Object> topology(TopologyDetails topology, Cluster cluster, Verdict verdict) {
        Map<String, Object> json = new LinkedHashMap<>();
        json.put("id", topology.getId());
        json.put("name", topology.getName());
        json.put("managed", verdict instanceof Verdict.Fit);
        json.put("epoch", verdict instanceof Verdict.Fit fit ? fit.plan().epoch() : null);
        json.put("reason", reason(verdict));
        if (verdict instanceof Verdict.Waiting) {
            json.put("waiting", true);
        }
        json.put("executors", executors(topology, cluster));
        return json;
    }

    /** Why the topology is not placed by a plan; empty if it is. */
    private static String reason(Verdict verdict) {
        if (verdict instanceof Verdict.Fit) {
            return "";
        } else if (verdict instanceof Verdict.Misfit misfit) {
            return misfit.reason();
        }
        return verdict instanceof Verdict.Unknown ? "plans not read yet" : "no plan";
    }

    private static List<Object> executors(TopologyDetails topology, Cluster cluster) {
        SchedulerAssignment assignment = cluster.getAssignmentById(topology.getId());
        Map<ExecutorDetails, WorkerSlot> slots = assignment == null ? Map.of() : assignment.getExecutorToSlot();
        List<ExecutorDetails> executors = new ArrayList<>(topology.getExecutors());
        executors.sort(Comparator.comparingInt(ExecutorDetails::getStartTask));
        List<Object> list = new ArrayList<>();
        for (ExecutorDetails executor : executors) {
            WorkerSlot slot = slots.get(executor);
            String node = slot == null ? null : cluster.getHost(slot.getNodeId());
            Map<String, Object> json = new LinkedHashMap<>();
            json.put("component", topology.getExecutorToComponent().get(executor));
            json.put("tasks", Arrays.asList(executor.getStartTask(), executor.getEndTask()));
            json.put("node", node);
            json.put("port", node == null ? null : slot.getPort());
            list.add(json);
        }
        return list;
    }
}
