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
    /** The next turn of the rotation. */
    private int turn;
    /** By weights: the index into {@link #targets} at each turn; null: the entries of the table have a turn each. */
    private int[] weighted;

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

    /** Counts a tuple and gives the task whose turn it is: by weights, else that of table entry (53 i) mod 128. */
    List<Integer> sendNext() {
        if (weighted == null) {
            List<Integer> answer = send(turn * STRIDE & MASK);
            turn = turn + 1 & MASK;
            return answer;
        }
        int index = weighted[turn];
        turn = turn + 1 == weighted.length ? 0 : turn + 1;
        sent[index]++;
        return answers.get(index);
    }

    /**
     * Makes {@link #sendNext} go by weights until the next table; what is not a replica has none. Without any weight
     * the entries of the table have their turns again.
     *
     * <p>The turn goes on from where it is: weights that come often would else give every turn to the first ones.
     *
     * @throws IllegalArgumentException if a task is none of the component's, or for weights that are none
     */
    void weigh(int[] tasks, int[] weights) {
        int[] byTarget = new int[targets.length];
        for (int i = 0; i < tasks.length; i++) {
            int index = index(tasks[i], "weights");
            if (owners != null && replicas.contains(tasks[i])) {
                byTarget[index] = weights[i];
            }
        }
        int[] round = Rotation.round(byTarget);
        weighted = round.length == 0 ? null : round;
        turn %= weighted == null ? KeyGroups.GROUPS : weighted.length;
    }

    /**
     * These tasks, ascending.
     *
     * @throws IllegalArgumentException if one is none of the component's
     */
    List<Integer> some(int[] tasks) {
        for (int task : tasks) {
            index(task, "sample");
        }
        return list(Arrays.stream(tasks).sorted().distinct());
    }

    private int index(int task, String what) {
        int index = Arrays.binarySearch(targets, task);
        if (index < 0) {
            throw new IllegalArgumentException("the " + what + " of task " + source + " for component '" + component
                + "' names task " + task + ", which is none of its tasks " + Arrays.toString(targets));
        }
        return index;
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
            weighted = null;
            turn &= MASK;
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
