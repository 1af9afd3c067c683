package leeward.plugin;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayInputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.zip.GZIPInputStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Snapshots as the znode holds them; the service's reader is tested with an envelope of the same form. */
class PackedTest {
    private static final int PORTS = 4;
    private static final int COMPONENTS = 40;
    private static final int NODES_PER_TOPOLOGY = 20;

    /** The text of an envelope. */
    static String unpacked(String envelope) throws Exception {
        Map<?, ?> json = (Map<?, ?>) Json.read(envelope);
        assertEquals(Packed.VERSION, json.get("version"));
        byte[] bytes = Base64.getDecoder().decode((String) json.get("gzip"));
        try (GZIPInputStream in = new GZIPInputStream(new ByteArrayInputStream(bytes))) {
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        }
    }

    /** A snapshot of the form of {@link Snapshot}: a topology of 40 components for each 20 nodes. */
    static byte[] snapshot(int nodes) {
        List<Object> supervisors = new ArrayList<>();
        for (int node = 0; node < nodes; node++) {
            Map<String, Object> json = new LinkedHashMap<>();
            UUID id = UUID.nameUUIDFromBytes(String.valueOf(node).getBytes(StandardCharsets.UTF_8));
            json.put("id", id + "-10.1." + node / 250 + "." + node % 250);
            json.put("node", String.format("node-%04d.cluster.example.org", node));
            json.put("ports", List.of(6700, 6701, 6702, 6703));
            json.put("meta", Map.of());
            json.put("blacklisted", false);
            supervisors.add(json);
        }
        List<Object> topologies = new ArrayList<>();
        for (int topology = 0; topology < nodes / NODES_PER_TOPOLOGY; topology++) {
            topologies.add(topology(topology, nodes));
        }
        Map<String, Object> snapshot = new LinkedHashMap<>();
        snapshot.put("version", Snapshot.VERSION);
        snapshot.put("supervisors", supervisors);
        snapshot.put("topologies", topologies);
        return Json.write(snapshot).getBytes(StandardCharsets.UTF_8);
    }

    private static Map<String, Object> topology(int number, int nodes) {
        List<Object> executors = new ArrayList<>();
        for (int task = 1; task <= 2 * COMPONENTS; task++) {
            int at = (number * 7919 + task * 104729) % (nodes * PORTS);
            Map<String, Object> json = new LinkedHashMap<>();
            json.put("component", "component-" + (task + 1) / 2);
            json.put("tasks", List.of(task, task));
            json.put("node", String.format("node-%04d.cluster.example.org", at / PORTS));
            json.put("port", 6700 + at % PORTS);
            executors.add(json);
        }
        Map<String, Object> json = new LinkedHashMap<>();
        json.put("id", "topology-" + number + "-" + number + "-1700000000");
        json.put("name", "topology-" + number);
        json.put("managed", true);
        json.put("epoch", (long) number);
        json.put("reason", "");
        json.put("executors", executors);
        return json;
    }

    @Test
    void aShortSnapshotStaysAsItIs() {
        byte[] text = "{\"version\":1}".getBytes(StandardCharsets.UTF_8);
        assertSame(text, Packed.of(text));
        byte[] most = new byte[Packed.PLAIN_MOST];
        assertSame(most, Packed.of(most));
        assertTrue(Packed.of(new byte[Packed.PLAIN_MOST + 1]).length < 1000);
    }

    @ParameterizedTest
    @ValueSource(ints = {1000, 2000, 5000})
    void aLongOneIsPackedAndFitsIntoAZnode(int nodes) throws Exception {
        byte[] text = snapshot(nodes);
        byte[] packed = Packed.of(text);
        System.out.printf("snapshot of %d nodes: %d bytes, packed %d%n", nodes, text.length, packed.length);
        assertArrayEquals(text, unpacked(new String(packed, StandardCharsets.UTF_8)).getBytes(StandardCharsets.UTF_8));
        assertArrayEquals(packed, Packed.of(text.clone()), "the same text gives the same bytes");
        assertDoesNotThrow(() -> Packed.checkSize(packed));
    }

    @Test
    void whatZooKeeperWouldNotTakeIsRefusedWithBothSizes() {
        IllegalStateException refused =
            assertThrows(IllegalStateException.class, () -> Packed.checkSize(new byte[2_000_000]));
        assertTrue(refused.getMessage().contains("has 2000000 bytes, ZooKeeper takes 1047551"), refused.getMessage());
    }
}
