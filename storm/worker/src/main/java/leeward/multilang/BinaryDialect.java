package leeward.multilang;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import leeward.grouping.KeyGroups;
import org.apache.storm.multilang.NoOutputException;
import org.apache.storm.multilang.ShellMsg;

/**
 * Binary frames of msgpack.
 *
 * <p>To the component a frame is a flat array of pairs: {@code channel, [values..., id?]} for a tuple, where a channel
 * is a number that {@code -1, [channel, component, stream, task, group]} has defined, one for each key group of a keyed
 * stream (so the group costs nothing), or for group null; {@code -2, [tasks]}; and for spouts {@code command, id}.
 *
 * <p>From the component a frame is a sequence of arrays: {@code [stream, values]} is a plain emit on a stream that
 * {@code [-8, stream, name]} has defined; the others begin with a negative number, see the constants.
 *
 * <p>No more than {@link #WINDOW} tuples are under way to the component, so that what it has not looked at yet stays
 * short when it is slow, however short tuples are.
 */
final class BinaryDialect extends Dialect {
    static final int WINDOW = 1024;
    /** Groupings write into the values of this stream's tuples. */
    private static final String MARKERS = "marker";

    private static final int DEFINE_CHANNEL = -1;
    private static final int TASK_IDS = -2;

    private static final int TAKEN = -1;
    private static final int ACK = -2;
    private static final int FAIL = -3;
    private static final int SYNC = -4;
    private static final int LOG = -5;
    private static final int ERROR = -6;
    private static final int METRICS = -7;
    private static final int DEFINE_STREAM = -8;
    private static final int EMIT = -9;

    private final PipeInput input;
    private final String task;
    private final boolean ids;

    /** By component, stream and task, at {@code group + 1}; 0: not defined yet, else one more than the number. */
    private final Map<String, Map<String, Map<Long, int[]>>> channels = new HashMap<>();
    private int channelCount;
    private final AtomicLong sent = new AtomicLong();
    private final AtomicLong taken = new AtomicLong();
    private volatile Thread waiting;
    private volatile boolean ended;

    private final PackReader reader = new PackReader();
    private final List<String> streams = new ArrayList<>();

    BinaryDialect(PipeInput input, BatchedOutput output, String task, boolean ids) {
        super(output);
        this.input = input;
        this.task = task;
        this.ids = ids;
        output.beginFrames();
    }

    // --- to the component

    @Override
    boolean ids() {
        return ids;
    }

    @Override
    void put(String id, String component, String stream, long source, int group, List<Object> values)
        throws IOException {
        PackWriter data = output.data;
        int channel = channel(component, stream, source, group);
        int start = data.length();
        int field = 0;
        try {
            data.integer(channel);
            data.array(values.size() + (ids ? 1 : 0));
            if (values instanceof PackedValues) {
                data.raw(((PackedValues) values).body);
            } else {
                for (; field < values.size(); field++) {
                    data.value(values.get(field));
                }
            }
        } catch (IllegalArgumentException e) {
            data.cut(start);
            throw new IOException("field " + field + " of a tuple from component '" + component + "', stream '"
                + stream + "', to " + task + " is " + e.getMessage() + ", which cannot travel to Python", e);
        }
        if (ids) {
            data.text(id);
        }
        sent.lazySet(sent.get() + 1);
        output.commit(2);
    }

    private int channel(String component, String stream, long source, int group) throws IOException {
        Map<String, Map<Long, int[]>> streamsOf = channels.get(component);
        Map<Long, int[]> tasks = streamsOf == null ? null : streamsOf.get(stream);
        int[] numbers = tasks == null ? null : tasks.get(source);
        if (numbers == null) {
            numbers = new int[KeyGroups.GROUPS + 1];
            channels.computeIfAbsent(component, key -> new HashMap<>()).computeIfAbsent(stream, key -> new HashMap<>())
                .put(source, numbers);
        }
        if (numbers[group + 1] == 0) {
            define(channelCount, component, stream, source, group);
            numbers[group + 1] = ++channelCount;
        }
        return numbers[group + 1] - 1;
    }

    private void define(int channel, String component, String stream, long source, int group) throws IOException {
        PackWriter data = output.data;
        data.integer(DEFINE_CHANNEL);
        data.array(5);
        data.integer(channel);
        data.value(component);
        data.value(stream);
        data.integer(source);
        data.value(group < 0 ? null : group);
        output.commit(2);
    }

    @Override
    void awaitRoom() throws IOException {
        if (sent.get() - taken.get() < WINDOW) {
            return;
        }
        output.flush();
        waiting = Thread.currentThread();
        try {
            while (sent.get() - taken.get() >= WINDOW) {
                if (ended) {
                    throw new IOException("the process of " + task + " has ended");
                }
                LockSupport.parkNanos(this, 10_000_000);
                if (Thread.interrupted()) {
                    throw new InterruptedIOException("the bolt is shutting down");
                }
            }
        } finally {
            waiting = null;
        }
    }

    @Override
    void end() {
        ended = true;
        LockSupport.unpark(waiting);
    }

    @Override
    void command(String name, Object id) throws IOException {
        output.lock.lock();
        try {
            output.data.text(name);
            output.data.value(id);
            output.commit(2);
            output.flush();
        } finally {
            output.lock.unlock();
        }
    }

    @Override
    void taskIds(List<Integer> tasks) throws IOException {
        output.lock.lock();
        try {
            output.data.integer(TASK_IDS);
            output.data.value(tasks);
            output.commit(2);
            output.flush();
        } finally {
            output.lock.unlock();
        }
    }

    // --- from the component

    @Override
    ShellMsg read() throws IOException, NoOutputException {
        try {
            while (true) {
                while (!reader.hasMore()) {
                    input.readFrame(reader, task);
                }
                ShellMsg message = next();
                if (message != null) {
                    return message;
                }
            }
        } catch (IOException | NoOutputException e) {
            end();
            throw e;
        }
    }

    private void take(long tuples) throws IOException {
        if (tuples > sent.get() - taken.get()) {
            throw new IOException(task + " says that it has taken more tuples than it got");
        }
        taken.addAndGet(tuples); // before `waiting` is looked at: the writer looks at them in the other order
        LockSupport.unpark(waiting);
    }

    /** The next message; null if it was for this class only. */
    private ShellMsg next() throws IOException {
        int start = reader.position();
        String stream = null;
        long code = 0;
        try {
            int parts = reader.array();
            code = reader.integer();
            if (code >= 0) {
                stream = stream(code);
                ShellMsg emit = emit(stream);
                emit.setTuple(stream.equals(MARKERS) ? reader.list() : reader.packed());
                return emit;
            }
            return other((int) code, parts);
        } catch (PackReader.UnfitException unfit) {
            reader.back(start);
            if (code == EMIT) {
                skipEmit();
            } else {
                reader.skip();
            }
            ShellMsg error = new ShellMsg();
            error.setCommand("error");
            error.setMsg("A tuple that " + task + " emitted" + (stream == null ? "" : " on stream '" + stream + "'")
                + " was not sent: it has " + unfit.getMessage() + ".");
            return error;
        }
    }

    private ShellMsg other(int code, int parts) throws IOException, PackReader.UnfitException {
        ShellMsg message = new ShellMsg();
        switch (code) {
            case TAKEN:
                take(reader.integer());
                return null;
            case DEFINE_STREAM:
                if (reader.integer() != streams.size()) {
                    throw new IOException(task + " numbers its streams out of turn");
                }
                streams.add(reader.text());
                return null;
            case EMIT:
                return fullEmit();
            case ACK:
            case FAIL:
                message.setCommand(code == ACK ? "ack" : "fail");
                message.setId(reader.value());
                return message;
            case SYNC:
                message.setCommand("sync");
                return message;
            case LOG:
                message.setCommand("log");
                message.setMsg(reader.text());
                message.setLogLevel((int) reader.integer());
                return message;
            case ERROR:
                message.setCommand("error");
                message.setMsg(reader.text());
                return message;
            case METRICS:
                message.setCommand("metrics");
                message.setMetricName(reader.text());
                message.setMetricParams(reader.value());
                return message;
            default:
                throw new IOException(task + " sent a message of the unknown kind " + code + " with " + parts + " parts");
        }
    }

    /** One that is not sent; a component that waits for its tasks hears that there are none. */
    private void skipEmit() throws IOException {
        int parts = reader.array();
        for (int i = 1; i < parts; i++) {
            reader.skip();
        }
        try {
            if (Boolean.TRUE.equals(reader.value())) {
                taskIds(Collections.emptyList());
            }
        } catch (PackReader.UnfitException e) {
            throw new IOException(task + " does not say whether it waits for the tasks of what it emits");
        }
    }

    /** Stream, values, anchors, id, task (0: by grouping), whether the component waits for the tasks. */
    private ShellMsg fullEmit() throws IOException, PackReader.UnfitException {
        ShellMsg emit = emit(stream(reader.integer()));
        emit.setTuple(emit.getStream().equals(MARKERS) ? reader.list() : reader.packed());
        for (Object anchor : reader.list()) {
            emit.addAnchor((String) anchor);
        }
        emit.setId(reader.value());
        emit.setTask(reader.integer());
        emit.setNeedTaskIds(Boolean.TRUE.equals(reader.value()));
        return emit;
    }

    private String stream(long number) throws IOException {
        if (number >= streams.size()) {
            throw new IOException(task + " emits on stream number " + number + ", which it has not defined");
        }
        return streams.get((int) number);
    }

    private static ShellMsg emit(String stream) {
        ShellMsg message = new ShellMsg();
        message.setCommand("emit");
        message.setStream(stream);
        message.setTask(0);
        message.setNeedTaskIds(false);
        return message;
    }
}
