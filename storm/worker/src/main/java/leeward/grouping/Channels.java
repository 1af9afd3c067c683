package leeward.grouping;

import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.storm.generated.GlobalStreamId;
import org.apache.storm.task.WorkerTopologyContext;

/**
 * The channels of one stream, by source task; groupings on different streams of one worker share a {@link Channel}.
 *
 * <p>That sharing is the point: a marker travels on a stream of its own and must switch the table, and take the counts,
 * of the data streams. Storm makes a grouping object for each executor, stream and target component, so they meet in a
 * map of the worker process.
 */
final class Channels {
    /** Topology id, source task and target component. The id is part of it because a local cluster is one process. */
    private static final Map<List<Object>, Channel> WORKER = new ConcurrentHashMap<>();

    private final int first;
    private final Channel[] bySource;

    private Channels(int first, Channel[] bySource) {
        this.first = first;
        this.bySource = bySource;
    }

    static Channels of(WorkerTopologyContext context, GlobalStreamId stream, List<Integer> targetTasks) {
        String target = context.getComponentId(targetTasks.get(0));
        List<Integer> sources = context.getComponentTasks(stream.get_componentId());
        int first = sources.stream().mapToInt(Integer::intValue).min().orElse(0);
        int last = sources.stream().mapToInt(Integer::intValue).max().orElse(-1);
        Channel[] channels = new Channel[last - first + 1];
        for (int source : sources) {
            channels[source - first] = WORKER.computeIfAbsent(
                Arrays.asList(context.getStormId(), source, target), key -> new Channel(source, target, targetTasks));
        }
        return new Channels(first, channels);
    }

    /** The channel of a task that emits. */
    Channel from(int source) {
        int index = source - first;
        Channel channel = index >= 0 && index < bySource.length ? bySource[index] : null;
        if (channel == null) {
            throw new IllegalStateException("task " + source + " emits on a stream that is not its component's");
        }
        return channel;
    }
}
