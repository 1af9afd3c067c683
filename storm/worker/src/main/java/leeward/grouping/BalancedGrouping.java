package leeward.grouping;

import java.util.List;
import org.apache.storm.generated.GlobalStreamId;
import org.apache.storm.grouping.CustomStreamGrouping;
import org.apache.storm.task.WorkerTopologyContext;

/** Spreads tuples over a stateless component's tasks, each in proportion to the entries it has in the table. */
public final class BalancedGrouping implements CustomStreamGrouping {
    private static final long serialVersionUID = 1L;

    private transient Channels channels;

    @Override
    public void prepare(WorkerTopologyContext context, GlobalStreamId stream, List<Integer> targetTasks) {
        channels = Channels.of(context, stream, targetTasks);
    }

    @Override
    public List<Integer> chooseTasks(int taskId, List<Object> values) {
        return channels.from(taskId).sendNext();
    }
}
