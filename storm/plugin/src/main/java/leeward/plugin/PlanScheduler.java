package leeward.plugin;

import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import org.apache.storm.Config;
import org.apache.storm.metric.StormMetricsRegistry;
import org.apache.storm.scheduler.Cluster;
import org.apache.storm.scheduler.IScheduler;
import org.apache.storm.scheduler.SchedulerAssignment;
import org.apache.storm.scheduler.SchedulerAssignmentImpl;
import org.apache.storm.scheduler.Topologies;
import org.apache.storm.shade.org.apache.curator.framework.CuratorFramework;
import org.apache.storm.utils.CuratorUtils;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Storm's scheduler plugin: places topologies as the plans in ZooKeeper say, everything else as Storm does.
 *
 * <p>Named in {@code storm.yaml}: {@code storm.scheduler: leeward.plugin.PlanScheduler}. Nimbus calls {@link #schedule}
 * on its only timer thread and exits if it throws; so it never waits for anything and catches everything. The decisions
 * are {@link PlanAssigner}'s; this class connects it to ZooKeeper.
 */
public final class PlanScheduler implements IScheduler {
    /** Where Leeward's znodes are. The other setting is {@link Access#FILE}. */
    static final String ROOT = "leeward.zookeeper.root";
    static final String ROOT_DEFAULT = "/leeward";

    private static final Logger LOG = LoggerFactory.getLogger(PlanScheduler.class);
    private static final long RETRY_MS = 1000;

    /** What a pass needs from outside: the wishes known now, and where its snapshot goes. Neither may block. */
    interface Link extends AutoCloseable {
        Optional<Map<String, Wish>> wishes();

        void publish(String snapshot);
    }

    private Link link;
    private final Setbacks setbacks = new Setbacks();
    private final Ports ports = new Ports();
    private final Set<String> placed = new HashSet<>();
    private String lastFailure = "";

    /** For Nimbus. */
    public PlanScheduler() {
    }

    PlanScheduler(Link link) {
        this.link = link;
    }

    @Override
    public void prepare(Map<String, Object> conf, StormMetricsRegistry metrics) {
        try {
            link = new ZooKeeperLink(conf);
        } catch (Throwable e) {
            LOG.error("leeward: no connection to ZooKeeper was made; running topologies stay where they are", e);
            link = new NoLink();
        }
    }

    @Override
    public void schedule(Topologies topologies, Cluster cluster) {
        String failure = "";
        try {
            Map<String, SchedulerAssignment> before = copy(cluster.getAssignments());
            ports.observe(cluster);
            PlanAssigner assigner = new PlanAssigner(topologies, cluster, setbacks, ports, placed);
            Map<String, Verdict> verdicts;
            try {
                verdicts = assigner.verdicts(link.wishes());
                assigner.carryOut(verdicts);
            } catch (Throwable e) {
                failure = failed(e);
                // what was done by halves must not reach Nimbus: it would stop workers
                cluster.setAssignments(before, true);
                verdicts = withoutPlans(topologies, "the plugin failed: " + e);
                carryOutOrRestore(assigner, verdicts, cluster, before);
            }
            ports.remember(cluster);
            link.publish(Snapshot.of(topologies, cluster, ports, verdicts));
        } catch (Throwable e) {
            failure = failed(e);
        }
        lastFailure = failure;
    }

    /** The way out when plans cannot even be judged: what runs stays, what does not is placed by Storm. */
    private static void carryOutOrRestore(PlanAssigner assigner, Map<String, Verdict> verdicts, Cluster cluster,
                                          Map<String, SchedulerAssignment> before) {
        try {
            assigner.carryOut(verdicts);
        } catch (Throwable e) {
            cluster.setAssignments(before, true);
            throw e;
        }
    }

    private static Map<String, Verdict> withoutPlans(Topologies topologies, String reason) {
        Map<String, Verdict> verdicts = new TreeMap<>();
        topologies.getAllIds().forEach(id -> verdicts.put(id, new Verdict.Misfit(reason)));
        return verdicts;
    }

    /** Logs a failure, but not the same one every second. */
    private String failed(Throwable e) {
        if (!e.toString().equals(lastFailure)) {
            LOG.error("leeward: a scheduling pass failed; what was placed stays", e);
        }
        return e.toString();
    }

    private static Map<String, SchedulerAssignment> copy(Map<String, SchedulerAssignment> assignments) {
        Map<String, SchedulerAssignment> copy = new HashMap<>();
        assignments.forEach((id, assignment) -> copy.put(id, new SchedulerAssignmentImpl(assignment)));
        return copy;
    }

    @Override
    public Map<String, Map<String, Double>> config() {
        return Map.of();
    }

    @Override
    public void cleanup() {
        try {
            link.close();
        } catch (Exception e) {
            LOG.warn("leeward: closing: {}", e.toString());
        }
    }

    /** The link of a plugin that runs in Nimbus. */
    private static final class ZooKeeperLink implements Link {
        private final CuratorFramework zookeeper;
        private final PlanSource source;
        private final SnapshotPublisher publisher;

        ZooKeeperLink(Map<String, Object> conf) throws Exception {
            String root = String.valueOf(conf.getOrDefault(ROOT, ROOT_DEFAULT));
            @SuppressWarnings("unchecked")
            List<String> servers = (List<String>) conf.get(Config.STORM_ZOOKEEPER_SERVERS);
            Access access = Access.of(conf);
            if (access.acl() == null) {
                LOG.warn("leeward: {} names no zookeeper_secret: every client of ZooKeeper can write to {}",
                    Access.FILE, root);
            }
            zookeeper = CuratorUtils.newCurator(conf, servers, conf.get(Config.STORM_ZOOKEEPER_PORT), "",
                access.info(conf), access.acl());
            source = new PlanSource(zookeeper, root);
            publisher = new SnapshotPublisher(zookeeper, access, root, RETRY_MS);
            zookeeper.start();
            source.start();
            publisher.start();
        }

        @Override
        public Optional<Map<String, Wish>> wishes() {
            return source.wishes();
        }

        @Override
        public void publish(String snapshot) {
            publisher.offer(snapshot);
        }

        @Override
        public void close() throws Exception {
            publisher.close();
            source.close();
            zookeeper.close();
        }
    }

    /** The link of a plugin whose settings are no good. */
    private static final class NoLink implements Link {
        @Override
        public Optional<Map<String, Wish>> wishes() {
            return Optional.empty();
        }

        @Override
        public void publish(String snapshot) {
            LOG.debug("leeward: no ZooKeeper to publish to");
        }

        @Override
        public void close() {
            LOG.debug("leeward: no ZooKeeper to leave");
        }
    }
}
