package leeward.grouping;

import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import org.apache.storm.generated.GlobalStreamId;
import org.apache.storm.grouping.CustomStreamGrouping;
import org.apache.storm.task.WorkerTopologyContext;

/**
 * Sends a marker to every task, a pulse to the replicas, and switches the sender's routing at that point of its
 * output.
 *
 * <p>The marker's fields are {@code kind, epoch, tables, counts, body}. {@code tables} is empty or
 * {@code component=t0,...,t127;component2=...}, parsed by hand because no JSON library is in every Storm 2.x. Into
 * {@code counts} goes how many tuples, pulses and route markers the sender has ever sent to each target before. All
 * target components
 * share the values of one emit and Storm asks their groupings one after the other, so each appends its own.
 *
 * <p>Two kinds are of a sender's router. {@code weights} goes to nobody: its {@code tables} are
 * {@code component=task:weight,...}, by which this sender's balanced tuples go round from here on. {@code sample} goes
 * to the tasks of {@code component=task,...}, which answer when they have done what was sent to them before. Neither is
 * counted, and neither has counts.
 */
public final class MarkerGrouping implements CustomStreamGrouping {
    private static final long serialVersionUID = 1L;

    static final List<String> FIELDS = Collections.unmodifiableList(
        Arrays.asList("kind", "epoch", "tables", "counts", "body"));
    /** The kind that goes to replicas only: to warm tasks goes nothing that it could cut. */
    private static final String PULSE = "pulse";
    /** The kind that says that groups have another owner. It is counted, as a pulse behind a lost one would be wrong. */
    private static final String ROUTE = "route";
    /** The kind that stays with its sender. */
    private static final String WEIGHTS = "weights";
    /** The kind that goes to the tasks that it names. */
    private static final String SAMPLE = "sample";
    private static final int KIND = 0;
    private static final int EPOCH = 1;
    private static final int TABLES = 2;
    private static final int COUNTS = 3;

    private transient Channels channels;

    @Override
    public void prepare(WorkerTopologyContext context, GlobalStreamId stream, List<Integer> targetTasks) {
        List<String> declared = context.getComponentOutputFields(stream).toList();
        if (!declared.equals(FIELDS)) {
            throw new IllegalArgumentException("stream '" + stream.get_streamId() + "' of component '"
                + stream.get_componentId() + "' declares " + declared + ", a marker stream declares " + FIELDS);
        }
        channels = Channels.of(context, stream, targetTasks);
    }

    @Override
    public List<Integer> chooseTasks(int taskId, List<Object> values) {
        Channel channel = channels.from(taskId);
        Object kind = values.get(KIND);
        String table = table(string(values, TABLES), channel.component());
        if (WEIGHTS.equals(kind)) {
            if (table != null) {
                weigh(channel, table);
            }
            return Collections.emptyList();
        }
        if (SAMPLE.equals(kind)) {
            return table == null ? Collections.emptyList() : channel.some(tasks(table, channel.component()));
        }
        if (table != null) {
            channel.install(epoch(values), tasks(table, channel.component()));
        }
        StringBuilder counts = new StringBuilder(string(values, COUNTS));
        channel.appendCounts(counts);
        values.set(COUNTS, counts.toString());
        if (PULSE.equals(kind)) {
            return channel.sendToReplicas();
        }
        return ROUTE.equals(kind) ? channel.sendToAll() : channel.all();
    }

    /** The text of one component's table, or null if the marker has none for it. */
    private static String table(String tables, String component) {
        for (int start = 0; start < tables.length(); ) {
            int end = tables.indexOf(';', start);
            end = end < 0 ? tables.length() : end;
            int equals = tables.indexOf('=', start);
            if (equals < 0 || equals > end) {
                throw new IllegalArgumentException("marker field 'tables' has '" + tables.substring(start, end)
                    + "' where component=t0,...,t127 must be");
            }
            if (equals - start == component.length() && tables.startsWith(component, start)) {
                return tables.substring(equals + 1, end);
            }
            start = end + 1;
        }
        return null;
    }

    private static int[] tasks(String table, String component) {
        String[] texts = table.split(",", -1);
        int[] tasks = new int[texts.length];
        for (int i = 0; i < texts.length; i++) {
            try {
                tasks[i] = Integer.parseInt(texts[i].trim());
            } catch (NumberFormatException e) {
                throw new IllegalArgumentException("the routing table for component '" + component + "' gives group "
                    + i + " to '" + texts[i] + "', which is no task id", e);
            }
        }
        return tasks;
    }

    private static void weigh(Channel channel, String text) {
        String[] entries = text.isEmpty() ? new String[0] : text.split(",", -1);
        int[] tasks = new int[entries.length];
        int[] weights = new int[entries.length];
        for (int i = 0; i < entries.length; i++) {
            int colon = entries[i].indexOf(':');
            try {
                tasks[i] = Integer.parseInt(entries[i].substring(0, Math.max(0, colon)));
                weights[i] = Integer.parseInt(entries[i].substring(colon + 1));
            } catch (NumberFormatException e) {
                throw new IllegalArgumentException("the weights for component '" + channel.component() + "' have '"
                    + entries[i] + "' where task:weight must be", e);
            }
        }
        channel.weigh(tasks, weights);
    }

    private static long epoch(List<Object> values) {
        Object epoch = values.get(EPOCH);
        if (epoch instanceof Integer || epoch instanceof Long) {
            return ((Number) epoch).longValue();
        }
        throw new IllegalArgumentException("marker field 'epoch' is " + epoch + ", not an integer");
    }

    private static String string(List<Object> values, int position) {
        Object value = values.get(position);
        if (value instanceof String) {
            return (String) value;
        }
        throw new IllegalArgumentException("marker field '" + FIELDS.get(position) + "' is " + value + ", not a text");
    }
}
