package leeward.grouping;

import java.util.List;
import org.apache.storm.generated.GlobalStreamId;
import org.apache.storm.grouping.CustomStreamGrouping;
import org.apache.storm.task.WorkerTopologyContext;

/**
 * Sends a tuple to the task that owns its key's group.
 *
 * <p>Storm finds the constructor by the exact types of the topology's arguments, so there is one for each number of
 * fields rather than one with a variable number.
 */
public final class KeyedGrouping implements CustomStreamGrouping {
    private static final long serialVersionUID = 1L;

    private final String[] fields;
    private transient Key key;
    private transient Channels channels;

    public KeyedGrouping(String field) {
        this(new String[] {field});
    }

    public KeyedGrouping(String field1, String field2) {
        this(new String[] {field1, field2});
    }

    public KeyedGrouping(String field1, String field2, String field3) {
        this(new String[] {field1, field2, field3});
    }

    private KeyedGrouping(String[] fields) {
        this.fields = fields;
    }

    @Override
    public void prepare(WorkerTopologyContext context, GlobalStreamId stream, List<Integer> targetTasks) {
        key = new Key(context, stream, fields);
        channels = Channels.of(context, stream, targetTasks);
    }

    @Override
    public List<Integer> chooseTasks(int taskId, List<Object> values) {
        return channels.from(taskId).send(key.group(values));
    }
}
