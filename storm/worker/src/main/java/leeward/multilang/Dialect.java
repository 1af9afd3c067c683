package leeward.multilang;

import java.io.IOException;
import java.util.Collections;
import java.util.List;
import org.apache.storm.Constants;
import org.apache.storm.multilang.NoOutputException;
import org.apache.storm.multilang.ShellMsg;
import org.apache.storm.task.ShellBolt;

/** One form of the messages between Storm and a shell component. One thread reads; any may write. */
abstract class Dialect {
    final BatchedOutput output;

    Dialect(BatchedOutput output) {
        this.output = output;
    }

    /** The next message of the component; waits for it. */
    abstract ShellMsg read() throws IOException, NoOutputException;

    /** Tuples need ids: the component acks each. */
    abstract boolean ids();

    /** A command for a spout, which is to answer at once. */
    abstract void command(String name, Object id) throws IOException;

    /** The tasks that got an emitted tuple, for which the component waits. */
    abstract void taskIds(List<Integer> tasks) throws IOException;

    /** Puts a tuple into the output, whose lock is held. {@code group}: of its key; -1 if its stream is not keyed. */
    abstract void put(String id, String component, String stream, long task, int group, List<Object> values)
        throws IOException;

    /** Waits while the component has enough to do. */
    void awaitRoom() throws IOException {
    }

    /** Nobody reads from the component any more: whoever waits for room waits in vain. */
    void end() {
    }

    /** A tuple for a bolt; {@code id} is how Storm knows it. */
    final void tuple(String id, String component, String stream, long task, int group, List<Object> values)
        throws IOException {
        awaitRoom();
        output.lock.lock();
        try {
            put(id, component, stream, task, group, values);
        } finally {
            output.lock.unlock();
        }
    }

    /** A heartbeat, which the component is to answer; none if something is being written at this moment. */
    final void heartbeat() throws IOException {
        if (output.lock.tryLock()) {
            try {
                put("heartbeat", null, ShellBolt.HEARTBEAT_STREAM_ID, Constants.SYSTEM_TASK_ID, -1,
                    Collections.emptyList());
            } finally {
                output.lock.unlock();
            }
        }
    }
}
