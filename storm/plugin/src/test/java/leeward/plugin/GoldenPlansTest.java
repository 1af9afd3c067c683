package leeward.plugin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.apache.storm.scheduler.Cluster;
import org.apache.storm.scheduler.ExecutorDetails;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The plans that Java and Python must understand alike: every file of {@code tests/plans}. */
class GoldenPlansTest {
    private static final Path FOLDER = Path.of(System.getProperty("plans.dir"));
    private static final String NAME = "query1";

    static Stream<String> files() throws IOException {
        try (Stream<Path> files = Files.list(FOLDER)) {
            return files.map(file -> file.getFileName().toString()).filter(name -> name.endsWith(".json")).sorted()
                .toList().stream();
        }
    }

    @Test
    void theFolderHasThem() throws IOException {
        assertTrue(files().count() >= 12, "only " + files().toList() + " in " + FOLDER);
    }

    @ParameterizedTest
    @MethodSource("files")
    void isJudgedAsTheFileSays(String file) throws Exception {
        Map<?, ?> golden = object(Json.read(Files.readString(FOLDER.resolve(file))));
        Map<?, ?> setting = object(golden.get("cluster"));
        Map<?, ?> expect = object(golden.get("expect"));
        assertEquals(file, golden.get("name") + ".json");

        Scene scene = scene(setting);
        String text = golden.get("plan") instanceof String string ? string : Json.write(golden.get("plan"));
        Wish wish = Wish.read(text.getBytes(StandardCharsets.UTF_8));
        Cluster cluster = scene.cluster();
        Verdict verdict = new PlanCheck(cluster, new Setbacks(), new Ports())
            .verdict(cluster.getTopologies().getById((String) setting.get("topology_id")), wish);

        assertEquals(expect.get("valid"), wish instanceof PlacementPlan);
        if (Boolean.TRUE.equals(expect.get("fits"))) {
            assertEquals(slots(expect), slots(cluster, assertInstanceOf(Verdict.Fit.class, verdict)));
        } else {
            String reason = assertInstanceOf(Verdict.Misfit.class, verdict).reason();
            assertTrue(reason.contains((String) expect.get("reason_contains")), reason);
        }
    }

    private static Scene scene(Map<?, ?> setting) {
        Scene scene = new Scene();
        for (Object each : list(setting.get("supervisors"))) {
            Map<?, ?> supervisor = object(each);
            String node = (String) supervisor.get("node");
            scene.another((String) supervisor.get("id"), node,
                list(supervisor.get("ports")).stream().map(GoldenPlansTest::number).toArray(Integer[]::new));
            if (Boolean.TRUE.equals(supervisor.get("blacklisted"))) {
                scene.blacklist(node);
            }
        }
        Map<ExecutorDetails, String> executors = new HashMap<>();
        object(setting.get("executors")).forEach((component, tasks) -> list(tasks).forEach(task ->
            executors.put(executor(task), (String) component)));
        scene.topology(NAME, (String) setting.get("topology_id"), 1, executors).topology("rival", 1, 9);
        for (Object each : list(setting.get("occupied"))) {
            Map<?, ?> slot = object(each);
            scene.runsOn("rival", scene.supervisorOf((String) slot.get("node")), number(slot.get("port")), 1);
        }
        return scene;
    }

    /** A task, or the first and last one of an executor. */
    private static ExecutorDetails executor(Object task) {
        List<?> range = task instanceof List<?> list ? list : List.of(task, task);
        return new ExecutorDetails(number(range.get(0)), number(range.get(1)));
    }

    private static Map<String, Set<Integer>> slots(Map<?, ?> expect) {
        Map<String, Set<Integer>> slots = new TreeMap<>();
        for (Object each : list(expect.get("slots"))) {
            Map<?, ?> slot = object(each);
            slots.put(slot.get("node") + ":" + slot.get("port"),
                new TreeSet<>(list(slot.get("tasks")).stream().map(GoldenPlansTest::number).toList()));
        }
        return slots;
    }

    private static Map<String, Set<Integer>> slots(Cluster cluster, Verdict.Fit fit) {
        Map<String, Set<Integer>> slots = new TreeMap<>();
        fit.slots().forEach((slot, executors) -> slots.put(cluster.getHost(slot.getNodeId()) + ":" + slot.getPort(),
            new TreeSet<>(executors.stream().map(ExecutorDetails::getStartTask).toList())));
        return slots;
    }

    private static Map<?, ?> object(Object json) {
        return assertInstanceOf(Map.class, json);
    }

    private static List<?> list(Object json) {
        return assertInstanceOf(List.class, json);
    }

    private static int number(Object json) {
        return Math.toIntExact((Long) json);
    }
}
