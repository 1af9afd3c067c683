package leeward.grouping;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.storm.generated.Bolt;
import org.apache.storm.generated.ComponentCommon;
import org.apache.storm.generated.ComponentObject;
import org.apache.storm.generated.GlobalStreamId;
import org.apache.storm.generated.Grouping;
import org.apache.storm.generated.NullStruct;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.grouping.CustomStreamGrouping;
import org.apache.storm.task.WorkerTopologyContext;
import org.apache.storm.tuple.Fields;

/** A worker for tests: Storm's own context of a topology with a source (tasks 1, 2), "count" and "sum". */
final class Worker {
    static final GlobalStreamId DATA = new GlobalStreamId("source", "default");
    static final GlobalStreamId MARKER = new GlobalStreamId("source", "marker");
    static final List<Integer> COUNT = List.of(3, 5, 7);
    static final List<Integer> SUM = List.of(300, 301);

    private static final Map<String, Map<String, Fields>> FIELDS = Map.of("source", Map.of(
        "default", new Fields("seq", "route", "cell"), "marker", new Fields(MarkerGrouping.FIELDS)));
    private static final AtomicInteger SUBMISSIONS = new AtomicInteger();

    private final WorkerTopologyContext context;

    /** A topology submitted anew: nothing is known of it in the process. */
    Worker() {
        Map<Integer, String> components = new TreeMap<>(Map.of(1, "source", 2, "source"));
        COUNT.forEach(task -> components.put(task, "count"));
        SUM.forEach(task -> components.put(task, "sum"));
        Map<String, List<Integer>> tasks = Map.of("source", List.of(1, 2), "count", COUNT, "sum", SUM);
        context = new WorkerTopologyContext(new StormTopology(), new HashMap<>(), components, tasks, FIELDS,
            "topology-" + SUBMISSIONS.incrementAndGet(), null, null, 6701, List.of(1, 2), new HashMap<>(),
                new HashMap<>());
    }

    <G extends CustomStreamGrouping> G prepare(G grouping, GlobalStreamId stream, List<Integer> targets) {
        grouping.prepare(context, stream, targets);
        return grouping;
    }

    /** The keys of "count" where it takes DATA by this grouping. */
    Map<String, Map<String, Key>> inputs(Grouping grouping) {
        ComponentCommon common = new ComponentCommon(Map.of(DATA, grouping, MARKER, Grouping.all(new NullStruct())), Map.of());
        StormTopology topology =
            new StormTopology(Map.of(), Map.of("count", new Bolt(new ComponentObject(), common)), Map.of());
        return Key.inputs(new WorkerTopologyContext(topology, new HashMap<>(), Map.of(), Map.of(), FIELDS, "t", null, null,
            6701, List.of(), new HashMap<>(), new HashMap<>()), "count");
    }

    MarkerGrouping marker(List<Integer> targets) {
        return prepare(new MarkerGrouping(), MARKER, targets);
    }

    KeyedGrouping keyed(String field) {
        return prepare(new KeyedGrouping(field), DATA, COUNT);
    }

    BalancedGrouping balanced(List<Integer> targets) {
        return prepare(new BalancedGrouping(), DATA, targets);
    }

    /** Values of a marker, as a task's output brings them: a list that can be changed. */
    static List<Object> marker(Object epoch, String tables) {
        return new ArrayList<>(Arrays.asList("route", epoch, tables, "", "{}"));
    }

    /** The text of a table over these tasks in turn. */
    static String table(String component, int... tasks) {
        StringBuilder text = new StringBuilder(component).append('=');
        for (int group = 0; group < KeyGroups.GROUPS; group++) {
            text.append(group == 0 ? "" : ",").append(tasks[group % tasks.length]);
        }
        return text.toString();
    }
}
