package leeward.grouping;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * What one source task knows of one target component: the table in force and how much was sent to each task.
 *
 * <p>Storm calls the groupings of one source task from one thread only (the one that reads the task's output), so
 * nothing here is synchronised.
 */
final class Channel {
    /** Odd, so that it visits all 128 entries; large, so that equal neighbours in the table are apart in time. */
    private static final int STRIDE = 53;
    private static final int MASK = KeyGroups.GROUPS - 1;

    private final int source;
    private final String component;
    /** All tasks of the target component, ascending. */
    private final int[] targets;
    /** For each of {@link #targets}: what was sent to it and is counted; never reset, as a marker may be lost with it. */
    private final long[] sent;
    /** For each of {@link #targets}: the list Storm wants, made once. */
    private final List<List<Integer>> answers;
    private final List<Integer> all;

    /** For each key group: the index into {@link #targets}; null until a marker brought a table. */
    private int[] owners;
    /** The tasks that own a key group; all, as long as there is no table. */
    private List<Integer> replicas;
    private long epoch;
    /** The next entry of the rotation, 0 to 127. */
    private int turn;

    Channel(int source, String component, List<Integer> targetTasks) {
        this.source = source;
        this.component = component;
        this.targets = targetTasks.stream().mapToInt(Integer::intValue).sorted().toArray();
        this.sent = new long[targets.length];
        this.answers = new ArrayList<>();
        for (int task : targets) {
            answers.add(Collections.singletonList(task));
        }
        this.all = list(Arrays.stream(targets));
        this.replicas = all;
    }

    /** Counts a tuple of this key group and gives its owner. */
    List<Integer> send(int group) {
        if (owners == null) {
            throw new IllegalStateException("task " + source + " has no routing table for component '" + component
                + "': the task must send a marker with tables first");
        }
        int index = owners[group];
        sent[index]++;
        return answers.get(index);
    }

    /** Counts a tuple and gives the next owner of the rotation: entry i of the table is (53 i) mod 128. */
    List<Integer> sendNext() {
        List<Integer> answer = send(turn * STRIDE & MASK);
        turn = turn + 1 & MASK;
        return answer;
    }

    /**
     * Puts a table in force, unless a younger one is.
     *
     * @param table the owner's task id for each key group
     * @throws IllegalArgumentException if it has not 128 entries or names a task that is not one of the component's
     */
    void install(long newEpoch, int[] table) {
        if (table.length != KeyGroups.GROUPS) {
            throw new IllegalArgumentException("the routing table of task " + source + " for component '" + component
                + "' has " + table.length + " entries, not " + KeyGroups.GROUPS);
        }
        int[] indices = new int[table.length];
        for (int group = 0; group < table.length; group++) {
            indices[group] = Arrays.binarySearch(targets, table[group]);
            if (indices[group] < 0) {
                throw new IllegalArgumentException("the routing table of task " + source + " for component '"
                    + component + "' gives group " + group + " to task " + table[group]
                    + ", which is none of its tasks " + Arrays.toString(targets));
            }
        }
        if (owners == null || newEpoch >= epoch) {
            owners = indices;
            replicas = list(Arrays.stream(table).sorted().distinct());
            epoch = newEpoch;
        }
    }

    /** Appends {@code task:count} for every target, joined with commas. */
    void appendCounts(StringBuilder out) {
        for (int i = 0; i < targets.length; i++) {
            if (out.length() > 0) {
                out.append(',');
            }
            out.append(targets[i]).append(':').append(sent[i]);
        }
    }

    /** All tasks of the component. */
    List<Integer> all() {
        return all;
    }

    /** Counts a marker for each replica, and gives them. */
    List<Integer> sendToReplicas() {
        for (int task : replicas) {
            sent[Arrays.binarySearch(targets, task)]++;
        }
        return replicas;
    }

    /** Counts a marker for every task of the component, and gives them. */
    List<Integer> sendToAll() {
        for (int i = 0; i < sent.length; i++) {
            sent[i]++;
        }
        return all;
    }

    private static List<Integer> list(IntStream tasks) {
        return Collections.unmodifiableList(tasks.boxed().collect(Collectors.toList()));
    }

    String component() {
        return component;
    }
}
