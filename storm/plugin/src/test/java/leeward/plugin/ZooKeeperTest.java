package leeward.plugin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import org.apache.storm.Config;
import org.apache.storm.metric.StormMetricsRegistry;
import org.apache.storm.scheduler.Cluster;
import org.apache.storm.shade.org.apache.curator.framework.CuratorFramework;
import org.apache.storm.shade.org.apache.zookeeper.KeeperException;
import org.apache.storm.shade.org.apache.zookeeper.ZooDefs;
import org.apache.storm.shade.org.apache.zookeeper.data.ACL;
import org.apache.storm.shade.org.apache.zookeeper.server.NIOServerCnxnFactory;
import org.apache.storm.utils.CuratorUtils;
import org.apache.storm.zookeeper.Zookeeper;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;

/** The whole plugin, prepared as Nimbus does it, against a real ZooKeeper in this process. */
@Timeout(60)
class ZooKeeperTest {
    private static final String PLAN = "{\"version\":1,\"topology_id\":\"q-1-0\",\"epoch\":%d,"
        + "\"slots\":[{\"node\":\"n1\",\"port\":%d,\"tasks\":[1]}]}";
    private static final String ZNODE = "/lee/placement/q";
    private static final String SNAPSHOT = "/lee/snapshot";

    @TempDir
    Path data;
    @TempDir
    Path otherData;

    private int port;
    private NIOServerCnxnFactory server;
    private CuratorFramework zookeeper;
    private final PlanScheduler scheduler = new PlanScheduler();
    private Cluster cluster;

    @BeforeEach
    void start() throws Exception {
        port = freePort();
        server = Zookeeper.mkInprocessZookeeper(data.toString(), port);
        zookeeper = CuratorUtils.newCuratorStarted(conf(), List.of("127.0.0.1"), port, null, null);
    }

    @AfterEach
    void stop() {
        scheduler.cleanup();
        zookeeper.close();
        if (server != null) {
            server.shutdown();
        }
    }

    private static int freePort() throws IOException {
        for (int port = 17100; port < 17200; port++) {
            try (ServerSocket socket = new ServerSocket(port)) {
                return socket.getLocalPort();
            } catch (IOException taken) {
                continue;
            }
        }
        throw new IOException("no port from 17100 to 17199 is free");
    }

    private Map<String, Object> conf() {
        Map<String, Object> conf = Scene.conf();
        conf.put(Config.STORM_ZOOKEEPER_SERVERS, List.of("127.0.0.1"));
        conf.put(Config.STORM_ZOOKEEPER_PORT, port);
        conf.put(Config.STORM_ZOOKEEPER_SESSION_TIMEOUT, 4000);
        conf.put(Config.STORM_ZOOKEEPER_CONNECTION_TIMEOUT, 2000);
        conf.put(Config.STORM_ZOOKEEPER_RETRY_TIMES, 2);
        conf.put(Config.STORM_ZOOKEEPER_RETRY_INTERVAL, 100);
        conf.put(Config.STORM_ZOOKEEPER_RETRY_INTERVAL_CEILING, 200);
        conf.put(PlanScheduler.ROOT, "/lee");
        return conf;
    }

    private void prepare() {
        scheduler.prepare(conf(), new StormMetricsRegistry());
    }

    private Map<String, Object> confWithSecret() throws IOException {
        Path file = otherData.resolve("secrets.json");
        Files.writeString(file, "{\"zookeeper_secret\": \"s3cret\"}");
        Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw-------"));
        Map<String, Object> conf = conf();
        conf.put(Access.FILE, file.toString());
        return conf;
    }

    /** Makes the test's client one that knows the secret; gives the one that does not. */
    private CuratorFramework authenticate() throws Exception {
        CuratorFramework stranger = zookeeper;
        Access access = Access.of(confWithSecret());
        zookeeper = CuratorUtils.newCuratorStarted(conf(), List.of("127.0.0.1"), port, "", access.info(conf()),
            access.acl());
        return stranger;
    }

    private void write(String znode, String text) throws Exception {
        zookeeper.create().orSetData().creatingParentsIfNeeded().forPath(znode, text.getBytes(StandardCharsets.UTF_8));
    }

    /** One pass; gives the topology's status. */
    private String status() {
        cluster = new Scene().supervisor("n1", 6701, 6702, 6703).topology("q", 1, 1).cluster();
        scheduler.schedule(cluster.getTopologies(), cluster);
        return String.valueOf(cluster.getStatus("q-1-0"));
    }

    private String snapshot() throws Exception {
        try {
            return new String(zookeeper.getData().forPath(SNAPSHOT), StandardCharsets.UTF_8);
        } catch (KeeperException.NoNodeException e) {
            return "";
        }
    }

    /** Repeats until it holds; the class' time limit ends what never does. */
    private static void eventually(Callable<Boolean> condition) throws Exception {
        while (!condition.call()) {
            Thread.sleep(20);
        }
    }

    private void restart(Path directory) throws Exception {
        server.shutdown();
        server = null;
        Thread.sleep(200);
        assertEquals("leeward: epoch 1 placed", status(), "the last known plan stays in force");
        server = Zookeeper.mkInprocessZookeeper(directory.toString(), port);
    }

    @Test
    void followsAPlanThroughItsLife() throws Exception {
        prepare();
        eventually(() -> status().equals("null") && snapshot().contains("no plan"));
        write(ZNODE, String.format(PLAN, 1, 6701));
        eventually(() -> status().equals("leeward: epoch 1 placed"));
        write(ZNODE, String.format(PLAN, 2, 6703));
        eventually(() -> status().equals("leeward: epoch 2 placed"));
        assertEquals(Map.of("n1:6703", Set.of(1)), Scene.placement(cluster, "q"));
        write(ZNODE, "{");
        eventually(() -> status().contains("malformed"));
        zookeeper.delete().forPath(ZNODE);
        eventually(() -> status().equals("null"));
    }

    @Test
    void readsPlansThatAreThereBeforeIt() throws Exception {
        write(ZNODE, String.format(PLAN, 1, 6701));
        prepare();
        eventually(() -> status().equals("leeward: epoch 1 placed"));
    }

    @Test
    void publishesSnapshotsOnlyWhenTheyChange() throws Exception {
        prepare();
        eventually(() -> status().equals("null") && snapshot().contains("no plan"));
        int version = zookeeper.checkExists().forPath(SNAPSHOT).getVersion();
        for (int pass = 0; pass < 20; pass++) {
            status();
            Thread.sleep(10);
        }
        assertEquals(version, zookeeper.checkExists().forPath(SNAPSHOT).getVersion());
        write(ZNODE, String.format(PLAN, 5, 6702));
        eventually(() -> status().equals("leeward: epoch 5 placed") && snapshot()
            .contains("\"managed\":true,\"epoch\":5"));
        assertInstanceOf(Map.class, Json.read(snapshot()));
    }

    @Test
    void publishesALongSnapshotPackedAndOnlyWhenItChanges() throws Exception {
        prepare();
        Scene scene = new Scene().topology("q", 1, 1);
        for (int node = 0; node < 1000; node++) {
            scene.supervisor("node-" + node, 6700, 6701, 6702, 6703);
        }
        cluster = scene.cluster();
        String[] text = {""};
        eventually(() -> {
            scheduler.schedule(cluster.getTopologies(), cluster);
            text[0] = snapshot();
            return text[0].startsWith("{\"version\":2,\"gzip\":");
        });
        String unpacked = PackedTest.unpacked(text[0]);
        assertTrue(unpacked.length() > Packed.PLAIN_MOST && unpacked.contains("\"node-999\""), unpacked);
        eventually(() -> {
            scheduler.schedule(cluster.getTopologies(), cluster);
            return PackedTest.unpacked(snapshot()).contains("no plan");
        });
        int version = zookeeper.checkExists().forPath(SNAPSHOT).getVersion();
        for (int pass = 0; pass < 5; pass++) {
            scheduler.schedule(cluster.getTopologies(), cluster);
            Thread.sleep(10);
        }
        assertEquals(version, zookeeper.checkExists().forPath(SNAPSHOT).getVersion());
    }

    @Test
    void putsAMissingOrForeignSnapshotRight() throws Exception {
        prepare();
        eventually(() -> status().equals("null") && snapshot().contains("no plan"));
        zookeeper.delete().forPath(SNAPSHOT);
        eventually(() -> status().equals("null") && snapshot().contains("no plan"));
        write(SNAPSHOT, "somebody else's");
        eventually(() -> status().equals("null") && snapshot().contains("no plan"));
    }

    @Test
    void survivesARestartOfZooKeeper() throws Exception {
        write(ZNODE, String.format(PLAN, 1, 6701));
        prepare();
        eventually(() -> status().equals("leeward: epoch 1 placed"));
        restart(data);
        write(ZNODE, String.format(PLAN, 2, 6702));
        eventually(() -> status().equals("leeward: epoch 2 placed") && snapshot().contains("\"epoch\":2"));
    }

    @Test
    void survivesALossOfAllThatZooKeeperHeld() throws Exception {
        write(ZNODE, String.format(PLAN, 1, 6701));
        prepare();
        eventually(() -> status().equals("leeward: epoch 1 placed") && snapshot().contains("\"epoch\":1"));
        restart(otherData);
        eventually(() -> status().equals("null") && snapshot().contains("no plan"));
        write(ZNODE, String.format(PLAN, 3, 6702));
        eventually(() -> status().equals("leeward: epoch 3 placed"));
    }

    @Test
    void startsWithoutAZooKeeperAndFindsItLater() throws Exception {
        server.shutdown();
        server = null;
        long start = System.nanoTime();
        prepare();
        status();
        long tookMs = (System.nanoTime() - start) / 1_000_000;
        assertTrue(tookMs < 1500, "prepare and the first pass took " + tookMs + " ms without a ZooKeeper");
        assertEquals(Map.of("n1:6701", Set.of(1)), Scene.placement(cluster, "q"));

        server = Zookeeper.mkInprocessZookeeper(data.toString(), port);
        write(ZNODE, String.format(PLAN, 1, 6703));
        eventually(() -> status().equals("leeward: epoch 1 placed") && snapshot().contains("\"epoch\":1"));
    }

    @Test
    void withASecretOthersCanNeitherReadNorWrite() throws Exception {
        scheduler.prepare(confWithSecret(), new StormMetricsRegistry());
        CuratorFramework stranger = authenticate();
        eventually(() -> status().equals("null") && snapshot().contains("no plan"));
        byte[] forged = String.format(PLAN, 1, 6703).getBytes(StandardCharsets.UTF_8);
        List<Executable> tries = List.of(
            () -> stranger.getData().forPath(SNAPSHOT),
            () -> stranger.setData().forPath(SNAPSHOT, forged),
            () -> stranger.getChildren().forPath("/lee/placement"),
            () -> stranger.create().forPath(ZNODE, forged),
            () -> stranger.delete().forPath("/lee/placement"),
            () -> stranger.create().forPath("/lee/more", forged));
        for (Executable each : tries) {
            assertThrows(KeeperException.NoAuthException.class, each);
        }
        stranger.close();
        write(ZNODE, String.format(PLAN, 2, 6703));
        eventually(() -> status().equals("leeward: epoch 2 placed") && snapshot().contains("\"epoch\":2"));
    }

    @Test
    void closesWhatAnInstallationWithoutASecretLeftOpen() throws Exception {
        write(ZNODE, String.format(PLAN, 1, 6703));
        write("/lee/draining/n7", "");
        write("/lee/topologies/old-1-0/control", "{}");
        write(SNAPSHOT, "an older one");
        scheduler.prepare(confWithSecret(), new StormMetricsRegistry());
        eventually(() -> status().equals("leeward: epoch 1 placed"));
        authenticate().close();
        eventually(() -> snapshot().contains("\"epoch\":1"));
        List<ACL> own = Access.of(confWithSecret()).acl();
        for (String path : List.of("/lee", "/lee/placement", ZNODE, "/lee/draining", "/lee/draining/n7",
            "/lee/topologies", SNAPSHOT)) {
            assertEquals(own, zookeeper.getACL().forPath(path), path);
        }
        assertEquals(ZooDefs.Ids.OPEN_ACL_UNSAFE, zookeeper.getACL().forPath("/lee/topologies/old-1-0"),
            "whether the tasks of an old topology have the secret is not known here");
    }

    @Test
    void aSecretsFileThatOthersCanReadIsNotUsedAndNothingIsPublishedOpenly() throws Exception {
        Map<String, Object> conf = confWithSecret();
        Files.setPosixFilePermissions(Path.of(conf.get(Access.FILE).toString()),
            PosixFilePermissions.fromString("rw-r--r--"));
        scheduler.prepare(conf, new StormMetricsRegistry());
        assertEquals("null", status());
        assertEquals(Map.of("n1:6701", Set.of(1)), Scene.placement(cluster, "q"));
        Thread.sleep(500);
        assertNull(zookeeper.checkExists().forPath("/lee"));
    }

    @Test
    void badSettingsDoNotEndNimbus() {
        scheduler.prepare(Map.of(), new StormMetricsRegistry());
        assertEquals("null", status());
        assertEquals(Map.of("n1:6701", Set.of(1)), Scene.placement(cluster, "q"));
    }
}
