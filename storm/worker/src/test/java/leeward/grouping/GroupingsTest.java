package leeward.grouping;

import static leeward.grouping.Worker.COUNT;
import static leeward.grouping.Worker.DATA;
import static leeward.grouping.Worker.SUM;
import static leeward.grouping.Worker.marker;
import static leeward.grouping.Worker.table;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.storm.Thrift;
import org.apache.storm.generated.Grouping;
import org.apache.storm.generated.JavaObject;
import org.apache.storm.generated.JavaObjectArg;
import org.apache.storm.utils.Utils;
import org.junit.jupiter.api.Test;

class GroupingsTest {
    private final Worker worker = new Worker();

    private static List<Object> tuple(Object route) {
        return List.of(1, route, -4);
    }

    /** What the receiving end computes is what the sending end routed by. */
    @Test
    void aTaskKnowsTheKeysOfItsInput() throws Exception {
        List<JavaObjectArg> fields = List.of(JavaObjectArg.string_arg("cell"), JavaObjectArg.string_arg("route"));
        Grouping keyed = Grouping.custom_object(new JavaObject("leeward.grouping.KeyedGrouping", fields));
        Map<String, Map<String, Key>> keys = worker.inputs(keyed);
        assertEquals(Map.of("source", Set.of("default")), Map.of("source", keys.get("source").keySet()));
        assertEquals(KeyGroups.group(List.of(-7L, "r"), new int[] {0, 1}, new String[] {"cell", "route"}, "source"),
            keys.get("source").get("default").group(List.of(1L, "r", -7L)));
        JavaObject balanced = new JavaObject("leeward.grouping.BalancedGrouping", List.of());
        assertEquals(Map.of(), worker.inputs(Grouping.custom_object(balanced)));
    }

    @Test
    void aKeyGoesToTheOwnerOfItsGroup() {
        KeyedGrouping keyed = worker.keyed("route");
        worker.marker(COUNT).chooseTasks(1, marker(0, table("count", 3, 5, 7)));
        for (int i = 0; i < 500; i++) {
            String key = "key-" + i;
            int group = KeyGroups.group(List.of(key), new int[] {0}, new String[] {"route"}, "source");
            assertEquals(List.of(COUNT.get(group % 3)), keyed.chooseTasks(1, tuple(key)));
        }
    }

    @Test
    void aKeyOfSeveralFieldsIsTakenInTheOrderNamed() {
        MarkerGrouping markers = worker.marker(COUNT);
        StringBuilder each = new StringBuilder("count=");
        for (int group = 0; group < KeyGroups.GROUPS; group++) {
            each.append(group == 0 ? "" : ",").append(COUNT.get(group * 3 / KeyGroups.GROUPS));
        }
        markers.chooseTasks(1, marker(0, each.toString()));
        KeyedGrouping keyed = worker.prepare(new KeyedGrouping("cell", "route"), DATA, COUNT);
        for (int i = 0; i < 50; i++) {
            int group = KeyGroups.group(List.of(i, "r"), new int[] {0, 1}, new String[] {"cell", "route"}, "source");
            assertEquals(List.of(COUNT.get(group * 3 / KeyGroups.GROUPS)), keyed.chooseTasks(1, List.of(9, "r", i)));
        }
    }

    @Test
    void withoutATableSendingIsAnError() {
        String keyed = assertThrows(IllegalStateException.class,
            () -> worker.keyed("route").chooseTasks(2, tuple("a"))).getMessage();
        assertEquals("task 2 has no routing table for component 'count': the task must send a marker with tables first", keyed);
        assertThrows(IllegalStateException.class, () -> worker.balanced(SUM).chooseTasks(1, tuple("a")));
    }

    @Test
    void aTableHoldsForTheTaskThatEmittedItOnly() {
        KeyedGrouping keyed = worker.keyed("route");
        worker.marker(COUNT).chooseTasks(1, marker(0, table("count", 3)));
        assertEquals(List.of(3), keyed.chooseTasks(1, tuple("a")));
        assertThrows(IllegalStateException.class, () -> keyed.chooseTasks(2, tuple("a")));
    }

    @Test
    void aMarkerGoesToAllTargetsAndSwitchesTheRoutingAtOnce() {
        KeyedGrouping keyed = worker.keyed("route");
        MarkerGrouping markers = worker.marker(COUNT);
        assertEquals(COUNT, markers.chooseTasks(1, marker(1, table("count", 3))));
        assertEquals(List.of(3), keyed.chooseTasks(1, tuple("a")));
        markers.chooseTasks(1, marker(2L, table("count", 7)));
        assertEquals(List.of(7), keyed.chooseTasks(1, tuple("a")));
    }

    @Test
    void aPulseGoesToTheReplicas() {
        MarkerGrouping markers = worker.marker(COUNT);
        List<Object> pulse = marker(1, "");
        pulse.set(0, "pulse");
        assertEquals(COUNT, markers.chooseTasks(1, pulse), "without a table any may be one");
        markers.chooseTasks(1, marker(1, table("count", 7, 3)));
        assertEquals(List.of(3, 7), markers.chooseTasks(1, pulse));
        assertEquals(COUNT, markers.chooseTasks(1, marker(2, "")));
        assertEquals(COUNT, markers.chooseTasks(2, pulse), "a table is of one sender");
    }

    @Test
    void anOlderTableDoesNotReplaceAYoungerOneButTheSameEpochDoes() {
        KeyedGrouping keyed = worker.keyed("route");
        MarkerGrouping markers = worker.marker(COUNT);
        markers.chooseTasks(1, marker(5, table("count", 3)));
        markers.chooseTasks(1, marker(4, table("count", 7)));
        assertEquals(List.of(3), keyed.chooseTasks(1, tuple("a")));
        markers.chooseTasks(1, marker(5, table("count", 5)));
        assertEquals(List.of(5), keyed.chooseTasks(1, tuple("a")));
        markers.chooseTasks(1, marker(9, ""));
        markers.chooseTasks(1, marker(6, table("count", 7)));
        assertEquals(List.of(7), keyed.chooseTasks(1, tuple("a")), "a marker without tables has no epoch to remember");
    }

    @Test
    void eachComponentPicksItsOwnTable() {
        String tables = table("su", 1) + ";" + table("sum", 301) + ";" + table("count", 5);
        worker.marker(COUNT).chooseTasks(1, marker(1, tables));
        worker.marker(SUM).chooseTasks(1, marker(1, tables));
        assertEquals(List.of(5), worker.keyed("route").chooseTasks(1, tuple("a")));
        assertEquals(List.of(301), worker.balanced(SUM).chooseTasks(1, tuple("a")));
    }

    @Test
    void countsAreOfOneSenderAndNeverResetAsAMarkerMayBeLost() {
        KeyedGrouping keyed = worker.keyed("route");
        MarkerGrouping markers = worker.marker(COUNT);
        markers.chooseTasks(1, marker(1, table("count", 5)));
        markers.chooseTasks(2, marker(1, table("count", 7)));
        for (int i = 0; i < 4; i++) {
            keyed.chooseTasks(1, tuple(i));
        }
        keyed.chooseTasks(2, tuple("a"));
        assertEquals("3:1,5:5,7:1", counts(markers, 1));
        assertEquals("3:1,5:5,7:1", counts(markers, 1));
        assertEquals("3:1,5:1,7:2", counts(markers, 2));
    }

    @Test
    void countsOfATableThatIsReplacedAreNotLost() {
        KeyedGrouping keyed = worker.keyed("route");
        MarkerGrouping markers = worker.marker(COUNT);
        markers.chooseTasks(1, marker(1, table("count", 5)));
        keyed.chooseTasks(1, tuple("a"));
        List<Object> switching = marker(2, table("count", 7));
        markers.chooseTasks(1, switching);
        assertEquals("3:1,5:2,7:1", switching.get(3));
        keyed.chooseTasks(1, tuple("a"));
        assertEquals("3:2,5:3,7:3", counts(markers, 1));
    }

    @Test
    void routeMarkersAndPulsesAreCountedAsTheLossOfOneMustShow() {
        MarkerGrouping markers = worker.marker(COUNT);
        markers.chooseTasks(1, marker(1, table("count", 5)));
        assertEquals("3:1,5:1,7:1", counts(markers, 1), "warm tasks get the route marker, too");
        List<Object> pulse = marker(1, "");
        pulse.set(0, "pulse");
        markers.chooseTasks(1, pulse);
        assertEquals("3:1,5:2,7:1", counts(markers, 1));
    }

    @Test
    void componentsAppendTheirCountsToTheSameValues() {
        String tables = table("count", 3) + ";" + table("sum", 300);
        List<Object> values = marker(1, tables);
        MarkerGrouping toCount = worker.marker(COUNT);
        MarkerGrouping toSum = worker.marker(SUM);
        toCount.chooseTasks(1, values);
        toSum.chooseTasks(1, values);
        assertEquals("3:0,5:0,7:0,300:0,301:0", values.get(3));
    }

    @Test
    void streamsToOneComponentShareTheirCounts() {
        MarkerGrouping markers = worker.marker(COUNT);
        markers.chooseTasks(1, marker(1, table("count", 3)));
        worker.keyed("route").chooseTasks(1, tuple("a"));
        worker.balanced(COUNT).chooseTasks(1, tuple("a"));
        assertEquals("3:3,5:1,7:1", counts(markers, 1));
    }

    /** As a marker that is not counted tells them. */
    private static String counts(MarkerGrouping markers, int task) {
        List<Object> values = marker(1, "");
        values.set(0, "call");
        markers.chooseTasks(task, values);
        return (String) values.get(3);
    }

    @Test
    void theRotationVisitsEveryEntryOnceInStridesOf53() {
        BalancedGrouping balanced = worker.balanced(COUNT);
        StringBuilder table = new StringBuilder("count=");
        for (int group = 0; group < KeyGroups.GROUPS; group++) {
            table.append(group == 0 ? "" : ",").append(group < 64 ? 3 : group < 96 ? 5 : 7);
        }
        worker.marker(COUNT).chooseTasks(1, marker(1, table.toString()));
        Map<Integer, Integer> sent = new HashMap<>();
        for (int i = 0; i < 2 * KeyGroups.GROUPS; i++) {
            int entry = i * 53 % KeyGroups.GROUPS;
            int task = balanced.chooseTasks(1, tuple("a")).get(0);
            assertEquals(entry < 64 ? 3 : entry < 96 ? 5 : 7, task, "turn " + i);
            sent.merge(task, 1, Integer::sum);
        }
        assertEquals(Map.of(3, 128, 5, 64, 7, 64), sent);
    }

    @Test
    void theRotationIsFairOverShortRunsToo() {
        for (int replicas = 1; replicas <= 3; replicas++) {
            Worker fresh = new Worker();
            BalancedGrouping balanced = fresh.balanced(COUNT);
            int[] tasks = COUNT.subList(0, replicas).stream().mapToInt(Integer::intValue).toArray();
            fresh.marker(COUNT).chooseTasks(1, marker(1, table("count", tasks)));
            Map<Integer, Integer> sent = new HashMap<>();
            for (int i = 0; i < 12; i++) {
                sent.merge(balanced.chooseTasks(1, tuple("a")).get(0), 1, Integer::sum);
            }
            for (int task : tasks) {
                assertTrue(Math.abs(sent.getOrDefault(task, 0) - 12.0 / replicas) <= 2, "12 tuples over " + sent);
            }
        }
    }

    @Test
    void badTablesAreRefusedAndChangeNothing() {
        KeyedGrouping keyed = worker.keyed("route");
        MarkerGrouping markers = worker.marker(COUNT);
        markers.chooseTasks(1, marker(1, table("count", 3)));
        keyed.chooseTasks(1, tuple("a"));
        Map<String, String> bad = Map.of(
            table("count", 3, 4), "gives group 1 to task 4, which is none of its tasks [3, 5, 7]",
            "count=3,5,7", "has 3 entries, not 128",
            "count=", "gives group 0 to '', which is no task id",
            table("count", 3) + ",3", "has 129 entries, not 128",
            "count=3,x", "gives group 1 to 'x', which is no task id",
            table("count", 3, -1), "gives group 1 to task -1, which is none of its tasks [3, 5, 7]",
            table("count", 3).replace("count=3", "count=None"), "gives group 0 to 'None', which is no task id",
            "count", "'count' where component=t0,...,t127 must be");
        bad.forEach((tables, reason) -> {
            String message = assertThrows(IllegalArgumentException.class,
                () -> markers.chooseTasks(1, marker(2, tables))).getMessage();
            assertTrue(message.contains(reason), message);
        });
        assertEquals(List.of(3), keyed.chooseTasks(1, tuple("a")));
        assertEquals("3:3,5:1,7:1", counts(markers, 1));
    }

    @Test
    void badMarkersAreRefused() {
        MarkerGrouping markers = worker.marker(COUNT);
        assertThrows(IllegalArgumentException.class, () -> markers.chooseTasks(1, marker("1", table("count", 3))));
        assertThrows(IllegalArgumentException.class, () -> markers.chooseTasks(1, marker(1, null)));
        String message = assertThrows(IllegalArgumentException.class,
            () -> worker.prepare(new MarkerGrouping(), DATA, COUNT)).getMessage();
        assertTrue(message.contains("stream 'default' of component 'source' declares [seq, route, cell]"), message);
    }

    @Test
    void anUnknownFieldIsNamedWhenTheWorkerStarts() {
        String message = assertThrows(IllegalArgumentException.class, () -> worker.keyed("rout")).getMessage();
        assertEquals("component 'source' has no field 'rout' on its stream 'default', which declares [seq, route, cell]", message);
    }

    @Test
    void aTaskOfAnotherComponentIsRefused() {
        KeyedGrouping keyed = worker.keyed("route");
        assertThrows(IllegalStateException.class, () -> keyed.chooseTasks(0, tuple("a")));
        assertThrows(IllegalStateException.class, () -> keyed.chooseTasks(3, tuple("a")));
    }

    @Test
    void topologiesInOneProcessDoNotMix() {
        worker.marker(COUNT).chooseTasks(1, marker(1, table("count", 3)));
        assertThrows(IllegalStateException.class, () -> new Worker().keyed("route").chooseTasks(1, tuple("a")));
    }

    /** As Storm does it with what streamparse's Grouping.custom_object gives: by the exact types of the arguments. */
    @Test
    void stormCanMakeThemFromTheTopology() {
        for (int fields = 1; fields <= 3; fields++) {
            List<JavaObjectArg> args = new ArrayList<>();
            for (int i = 0; i < fields; i++) {
                args.add(JavaObjectArg.string_arg(List.of("seq", "route", "cell").get(i)));
            }
            Object keyed = Thrift.instantiateJavaObject(new JavaObject("leeward.grouping.KeyedGrouping", args));
            worker.prepare(assertInstanceOf(KeyedGrouping.class, keyed), DATA, COUNT);
        }
        assertInstanceOf(BalancedGrouping.class,
            Thrift.instantiateJavaObject(new JavaObject("leeward.grouping.BalancedGrouping", new ArrayList<>())));
        assertInstanceOf(MarkerGrouping.class,
            Thrift.instantiateJavaObject(new JavaObject("leeward.grouping.MarkerGrouping", new ArrayList<>())));
    }

    @Test
    void theyTravelAsSerializedObjectsToo() {
        KeyedGrouping copy = Utils.javaDeserialize(Utils.javaSerialize(new KeyedGrouping("route")),
            KeyedGrouping.class);
        worker.marker(COUNT).chooseTasks(1, marker(1, table("count", 5)));
        assertEquals(List.of(5), worker.prepare(copy, DATA, COUNT).chooseTasks(1, tuple("a")));
    }

    @Test
    void sendingAllocatesNothing() {
        KeyedGrouping keyed = worker.keyed("route");
        BalancedGrouping balanced = worker.balanced(COUNT);
        worker.marker(COUNT).chooseTasks(1, marker(1, table("count", 3, 5, 7)));
        List<Object> text = tuple("155.157-154.160 Z\u00fcrich");
        List<Object> number = tuple(-1234567890123L);
        assertSame(keyed.chooseTasks(1, text), keyed.chooseTasks(1, text));
        send(20_000, keyed, balanced, text, number);
        var threads = (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
        long before = threads.getCurrentThreadAllocatedBytes();
        send(20_000, keyed, balanced, text, number);
        long bytes = threads.getCurrentThreadAllocatedBytes() - before;
        assertTrue(bytes < 20_000, bytes + " bytes for 60000 tuples");
    }

    private static void send(int rounds, KeyedGrouping keyed, BalancedGrouping balanced, List<Object> text,
        List<Object> number) {
        for (int i = 0; i < rounds; i++) {
            keyed.chooseTasks(1, text);
            keyed.chooseTasks(1, number);
            balanced.chooseTasks(1, text);
        }
    }
}
