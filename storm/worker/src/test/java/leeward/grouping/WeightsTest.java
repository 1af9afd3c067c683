package leeward.grouping;

import static leeward.grouping.Worker.COUNT;
import static leeward.grouping.Worker.SUM;
import static leeward.grouping.Worker.marker;
import static leeward.grouping.Worker.table;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.storm.shade.net.minidev.json.JSONValue;
import org.junit.jupiter.api.Test;

/** A sender's router sets the weights of its balanced tuples, and asks tasks by samples. */
class WeightsTest {
    private final Worker worker = new Worker();
    private final MarkerGrouping markers = worker.marker(COUNT);
    private final BalancedGrouping balanced = worker.balanced(COUNT);

    private static List<Object> of(String kind, String tables) {
        List<Object> values = marker(0, tables);
        values.set(0, kind);
        return values;
    }

    /** The task of each of the next tuples. */
    private List<Integer> next(int tuples) {
        List<Integer> tasks = new ArrayList<>();
        for (int i = 0; i < tuples; i++) {
            tasks.addAll(balanced.chooseTasks(1, List.of(1, "a", -4)));
        }
        return tasks;
    }

    private String counts() {
        List<Object> values = of("call", "");
        markers.chooseTasks(1, values);
        return (String) values.get(3);
    }

    /** The file that the Python side is held to as well. */
    @Test
    void theRoundIsThatOfTheVectors() throws Exception {
        String text = Files.readString(Path.of(System.getProperty("vectors.dir"), "rotation.json"));
        Map<?, ?> file = (Map<?, ?>) JSONValue.parseWithException(text);
        assertEquals(Rotation.LONGEST, file.get("longest"));
        List<?> vectors = (List<?>) file.get("vectors");
        assertTrue(vectors.size() >= 60, vectors.size() + " vectors");
        for (Object each : vectors) {
            Map<?, ?> vector = (Map<?, ?>) each;
            List<Map.Entry<Integer, Integer>> pairs = new ArrayList<>();
            for (Object pair : (List<?>) vector.get("weights")) {
                pairs.add(Map.entry((Integer) ((List<?>) pair).get(0), (Integer) ((List<?>) pair).get(1)));
            }
            pairs.sort(Map.Entry.comparingByKey());
            int[] turns = Rotation.round(pairs.stream().mapToInt(Map.Entry::getValue).toArray());
            List<Integer> tasks = new ArrayList<>();
            for (int turn : turns) {
                tasks.add(pairs.get(turn).getKey());
            }
            assertEquals(vector.get("round"), tasks, () -> "weights " + vector.get("weights"));
        }
    }

    @Test
    void weightsThatAreNoneAreRefused() {
        assertThrows(IllegalArgumentException.class, () -> Rotation.round(new int[] {1, -1}));
        assertThrows(IllegalArgumentException.class, () -> Rotation.round(new int[] {Integer.MAX_VALUE, 1}));
        assertArrayEquals(new int[0], Rotation.round(new int[] {0, 0}));
        markers.chooseTasks(1, marker(1, table("count", 3, 5, 7)));
        for (String bad : List.of("count=3:1,4:1", "count=3", "count=3:x", "count=3:-1", "count=:1", "count=3:1,")) {
            assertThrows(IllegalArgumentException.class, () -> markers.chooseTasks(1, of("weights", bad)), bad);
        }
        assertThrows(IllegalArgumentException.class, () -> markers.chooseTasks(1, of("sample", "count=3,4")));
    }

    @Test
    void weightsStayWithTheirSenderAndChangeItsTurns() {
        markers.chooseTasks(1, marker(1, table("count", 3, 5, 7)));
        markers.chooseTasks(2, marker(1, table("count", 3, 5, 7)));
        String before = counts();
        assertEquals(List.of(), markers.chooseTasks(1, of("weights", "count=3:2,5:1,7:0")));
        assertEquals(before, counts());
        assertEquals(List.of(3, 5, 3, 3, 5, 3), next(6));
        assertEquals(List.of(3), balanced.chooseTasks(2, List.of(1, "a", -4)), "another task has its own");
    }

    @Test
    void aTableMakesWeightsStartAnewAndAnOlderOneDoesNot() {
        markers.chooseTasks(1, marker(5, table("count", 3, 5, 7)));
        markers.chooseTasks(1, of("weights", "count=7:1"));
        assertEquals(List.of(7, 7), next(2));
        markers.chooseTasks(1, marker(4, table("count", 3)));
        assertEquals(List.of(7, 7), next(2));
        markers.chooseTasks(1, marker(6, table("count", 3)));
        assertEquals(List.of(3, 3, 3), next(3));
    }

    @Test
    void aTaskThatIsNoReplicaGetsNothingWhateverItsWeight() {
        markers.chooseTasks(1, of("weights", "count=3:5"));
        markers.chooseTasks(1, marker(1, table("count", 3, 5)));
        markers.chooseTasks(1, of("weights", "count=7:9,5:1"));
        assertEquals(List.of(5, 5, 5), next(3));
        markers.chooseTasks(1, of("weights", "count=7:9"));
        assertEquals(2, next(128).stream().distinct().count(), "no weight of a replica: the table's entries again");
        markers.chooseTasks(1, of("weights", "sum=300:1"));
        assertEquals(2, next(128).stream().distinct().count(), "another component's");
    }

    /** Else weights that come often would give every turn to the tasks with most. */
    @Test
    void theTurnGoesOnWhenWeightsCome() {
        markers.chooseTasks(1, marker(1, table("count", 3, 5)));
        List<Integer> tasks = new ArrayList<>();
        for (int i = 0; i < 8; i++) {
            markers.chooseTasks(1, of("weights", "count=3:3,5:1"));
            tasks.addAll(next(1));
        }
        assertEquals(List.of(3, 3, 5, 3, 3, 3, 5, 3), tasks);
    }

    @Test
    void countsHoldUnderWeights() {
        markers.chooseTasks(1, marker(1, table("count", 3, 5, 7)));
        String start = counts();
        markers.chooseTasks(1, of("weights", "count=3:1,5:3"));
        next(8);
        assertEquals("3:1,5:1,7:1", start);
        assertEquals("3:3,5:7,7:1", counts());
    }

    @Test
    void aSampleGoesToTheTasksThatItNamesAndIsNotCounted() {
        markers.chooseTasks(1, marker(1, table("count", 3, 5)));
        String before = counts();
        List<Object> sample = of("sample", "sum=300;count=7,3,3");
        assertEquals(List.of(3, 7), markers.chooseTasks(1, sample));
        assertEquals("", sample.get(3));
        assertEquals(List.of(300), worker.marker(SUM).chooseTasks(1, sample));
        assertEquals(List.of(), markers.chooseTasks(1, of("sample", "sum=300")));
        assertEquals(before, counts());
    }

    @Test
    void sendingByWeightsAllocatesNothing() {
        markers.chooseTasks(1, marker(1, table("count", 3, 5, 7)));
        markers.chooseTasks(1, of("weights", "count=3:64,5:40,7:24"));
        List<Object> tuple = List.of(1, "a", -4);
        var threads = (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
        for (int i = 0; i < 20_000; i++) {
            balanced.chooseTasks(1, tuple);
        }
        long before = threads.getCurrentThreadAllocatedBytes();
        for (int i = 0; i < 20_000; i++) {
            balanced.chooseTasks(1, tuple);
        }
        long bytes = threads.getCurrentThreadAllocatedBytes() - before;
        assertTrue(bytes < 20_000, bytes + " bytes for 20000 tuples");
    }
}
