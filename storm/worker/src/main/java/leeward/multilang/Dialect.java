package leeward.multilang;

import java.io.IOException;
import java.util.List;
import org.apache.storm.multilang.NoOutputException;
import org.apache.storm.multilang.ShellMsg;

/** One form of the messages between Storm and a shell component. One thread reads; any may write. */
interface Dialect {
    /** The next message of the component; waits for it. */
    ShellMsg read() throws IOException, NoOutputException;

    /** Tuples need ids: the component acks each. */
    boolean ids();

    /** A tuple for a bolt; {@code id} is how Storm knows it. Waits while the component has enough to do. */
    void tuple(String id, String component, String stream, long task, List<Object> values) throws IOException;

    /** A heartbeat, which the component is to answer; none if something is being written at this moment. */
    void heartbeat() throws IOException;

    /** A command for a spout, which is to answer at once. */
    void command(String name, Object id) throws IOException;

    /** The tasks that got an emitted tuple, for which the component waits. */
    void taskIds(List<Integer> tasks) throws IOException;
}
