package leeward.plugin;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.storm.Config;
import org.apache.storm.daemon.nimbus.Nimbus;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.metric.StormMetricsRegistry;
import org.apache.storm.scheduler.Cluster;
import org.apache.storm.scheduler.ExecutorDetails;
import org.apache.storm.scheduler.SchedulerAssignment;
import org.apache.storm.scheduler.SchedulerAssignmentImpl;
import org.apache.storm.scheduler.SupervisorDetails;
import org.apache.storm.scheduler.Topologies;
import org.apache.storm.scheduler.TopologyDetails;
import org.apache.storm.scheduler.WorkerSlot;
import org.apache.storm.scheduler.resource.normalization.ResourceMetrics;
import org.apache.storm.utils.Time;
import org.apache.storm.utils.Utils;

/** Builds Storm's own model objects for a test: supervisors, topologies, what runs where. No daemons, no mocks. */
final class Scene {
    private static final Map<String, Object> DEFAULTS = Utils.readDefaultConfig();

    private final Map<String, SupervisorDetails> supervisors = new TreeMap<>();
    private final Map<String, TopologyDetails> topologies = new TreeMap<>();
    private final Map<String, Map<ExecutorDetails, WorkerSlot>> running = new TreeMap<>();
    private final Set<String> blacklisted = new HashSet<>();
    private final Map<String, String> statuses = new HashMap<>();

    /** A supervisor with id "s-" + node. */
    Scene supervisor(String node, Integer... ports) {
        supervisors.put("s-" + node, new SupervisorDetails("s-" + node, node, Map.of("zone", "edge"),
            Arrays.asList(ports)));
        return this;
    }

    /** A second supervisor on a host. */
    Scene another(String id, String node, Integer... ports) {
        supervisors.put(id, new SupervisorDetails(id, node, Map.of(), Arrays.asList(ports)));
        return this;
    }

    Scene without(String node) {
        supervisors.remove("s-" + node);
        return this;
    }

    Scene blacklist(String node) {
        blacklisted.add(node);
        return this;
    }

    /** A topology with id name + "-1-0" and single-task executors 1 to tasks. */
    Scene topology(String name, int workers, int tasks) {
        Map<ExecutorDetails, String> executors = new HashMap<>();
        for (int task = 1; task <= tasks; task++) {
            executors.put(new ExecutorDetails(task, task), "c" + task);
        }
        return topology(name, workers, executors);
    }

    Scene topology(String name, int workers, Map<ExecutorDetails, String> executors) {
        return topology(name, name + "-1-0", workers, executors);
    }

    Scene topology(String name, String id, int workers, Map<ExecutorDetails, String> executors) {
        Map<String, Object> conf = conf();
        conf.put(Config.TOPOLOGY_NAME, name);
        topologies.put(id, new TopologyDetails(id, conf, new StormTopology(), workers, executors, "owner"));
        return this;
    }

    /** As `topology`, submitted so many seconds ago, and to wait for its first plan for `wait` seconds. */
    Scene waiting(String name, int workers, int tasks, int ago, Object wait) {
        topology(name, workers, tasks);
        TopologyDetails plain = topologies.get(name + "-1-0");
        Map<String, Object> conf = new HashMap<>(plain.getConf());
        conf.put(PlanAssigner.FIRST_PLAN, wait);
        topologies.put(plain.getId(), new TopologyDetails(plain.getId(), conf, plain.getTopology(), workers,
            plain.getExecutorToComponent(), Time.currentTimeSecs() - ago, "owner"));
        return this;
    }

    /** These tasks of topology name + "-1-0" run there. */
    Scene runs(String name, String node, int port, Integer... tasks) {
        return runsOn(name, "s-" + node, port, tasks);
    }

    Scene runsOn(String name, String supervisorId, int port, Integer... tasks) {
        for (int task : tasks) {
            running.computeIfAbsent(name + "-1-0", key -> new HashMap<>())
                .put(new ExecutorDetails(task, task), new WorkerSlot(supervisorId, port));
        }
        return this;
    }

    /** The id of a supervisor on a host. */
    String supervisorOf(String node) {
        return supervisors.values().stream().filter(s -> s.getHost().equals(node)).findFirst().orElseThrow().getId();
    }

    Scene status(String name, String status) {
        statuses.put(name + "-1-0", status);
        return this;
    }

    Topologies topologies() {
        return new Topologies(topologies);
    }

    Watched cluster() {
        Map<String, SchedulerAssignmentImpl> assignments = new HashMap<>();
        running.forEach((id, slots) -> assignments.put(id, new SchedulerAssignmentImpl(id, slots, null, null)));
        Watched cluster = new Watched(this, assignments);
        cluster.setBlacklistedHosts(blacklisted);
        cluster.setStatusMap(statuses);
        return cluster;
    }

    /** Records which slots are freed and assigned. */
    static final class Watched extends Cluster {
        final List<String> touched;

        private Watched(Scene scene, Map<String, SchedulerAssignmentImpl> assignments) {
            super(new Nimbus.StandaloneINimbus(), new ResourceMetrics(new StormMetricsRegistry()), scene.supervisors,
                assignments, scene.topologies(), conf());
            touched = new ArrayList<>();
        }

        @Override
        public void freeSlot(WorkerSlot slot) {
            touched.add("free " + shown(slot));
            super.freeSlot(slot);
        }

        @Override
        public void assign(WorkerSlot slot, String id, Collection<ExecutorDetails> executors) {
            if (touched != null) { // not while the constructor fills it
                touched.add("assign " + shown(slot));
            }
            super.assign(slot, id, executors);
        }
    }

    /** What a topology has, as {"n1:6701": [1, 2]}. */
    static Map<String, Set<Integer>> placement(Cluster cluster, String name) {
        Map<String, Set<Integer>> placement = new TreeMap<>();
        SchedulerAssignment assignment = cluster.getAssignmentById(name + "-1-0");
        if (assignment != null) {
            assignment.getExecutorToSlot().forEach((executor, slot) ->
                placement.computeIfAbsent(shown(slot), key -> new TreeSet<>()).add(executor.getStartTask()));
        }
        return placement;
    }

    static String shown(WorkerSlot slot) {
        return slot.getNodeId().substring(2) + ":" + slot.getPort();
    }

    /** A plan for topology name + "-1-0" from texts like "n1:6701 1 2". */
    static PlacementPlan plan(String name, long epoch, String... slots) {
        List<PlacementPlan.Slot> list = new ArrayList<>();
        for (String slot : slots) {
            String[] words = slot.split("[: ]");
            List<Integer> tasks = new ArrayList<>();
            for (int i = 2; i < words.length; i++) {
                tasks.add(Integer.parseInt(words[i]));
            }
            list.add(new PlacementPlan.Slot(words[0], Integer.parseInt(words[1]), tasks));
        }
        return new PlacementPlan(name + "-1-0", epoch, list);
    }

    /** Storm's defaults. */
    static Map<String, Object> conf() {
        return new HashMap<>(DEFAULTS);
    }
}
