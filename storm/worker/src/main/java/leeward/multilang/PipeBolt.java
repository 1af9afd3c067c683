package leeward.multilang;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import leeward.grouping.Key;
import org.apache.storm.Config;
import org.apache.storm.multilang.ShellMsg;
import org.apache.storm.task.OutputCollector;
import org.apache.storm.task.ShellBolt;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.utils.ShellLogHandler;
import org.apache.storm.utils.ShellUtils;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Storm's ShellBolt without a queue, a map entry, an ack and a look at the error stream for each tuple: the executor's
 * own thread puts tuples into the pipe's next batch, another reads what comes back.
 *
 * <p>A process that is lost is replaced, and the worker lives on ({@link Child}). Tuples that come meanwhile wait. Those
 * that the lost process had received fail, where they have ids; where they have none, Leeward's protocol notices.
 *
 * <p>With another serializer than {@link FrameSerializer} it is Storm's ShellBolt.
 */
public final class PipeBolt extends ShellBolt {
    private static final long serialVersionUID = 1L;
    private static final Logger LOG = LoggerFactory.getLogger(PipeBolt.class);
    /** What the component prints is passed on to the log this often; one that prints more than a pipe holds waits. */
    static final long LOG_NS = TimeUnit.MILLISECONDS.toNanos(20);
    private static final long BEAT_MS = 500;

    private final String[] command;
    private transient Child child;
    private transient OutputCollector collector;
    private transient ShellLogHandler logs;
    private transient ScheduledExecutorService timer;
    /** Tuples under way by id; stays empty where tuples have none. */
    private transient Map<String, Tuple> inputs;
    /** By source component and stream: what the input is keyed by. */
    private transient Map<String, Map<String, Key>> keys;

    public PipeBolt(String command, String script) {
        super(command, script);
        this.command = new String[] {command, script};
    }

    @Override
    public void prepare(Map<String, Object> conf, TopologyContext context, OutputCollector out) {
        if (!FrameSerializer.class.getName().equals(conf.get(Config.TOPOLOGY_MULTILANG_SERIALIZER))) {
            super.prepare(conf, context, out);
            return;
        }
        collector = out;
        inputs = new ConcurrentHashMap<>();
        keys = Key.inputs(context, context.getThisComponentId());
        logs = ShellUtils.getLogHandler(conf);
        child = Child.of(conf, context, command, new Life());
        ComponentProcess first = child.start();
        Child.daemon(() -> readAll(first, context), "leeward-read-" + child).start();
        timer = Executors.newSingleThreadScheduledExecutor(work -> Child.daemon(work, "leeward-beat-" + child));
        timer.scheduleAtFixedRate(this::beat, BEAT_MS, BEAT_MS, TimeUnit.MILLISECONDS);
    }

    @Override
    public void execute(Tuple input) {
        if (child == null) {
            super.execute(input);
            return;
        }
        ComponentProcess process;
        try {
            process = child.await();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return;
        }
        if (process == null) {
            return; // the bolt is shutting down
        }
        Dialect dialect = process.dialect();
        String id = null;
        if (dialect.ids()) {
            id = Long.toString(ThreadLocalRandom.current().nextLong());
            inputs.put(id, input);
        }
        try {
            String source = input.getSourceComponent();
            String stream = input.getSourceStreamId();
            Key key = keys.getOrDefault(source, Collections.emptyMap()).get(stream);
            dialect.tuple(id, source, stream, input.getSourceTask(), key == null ? -1 : key.group(input.getValues()),
                input.getValues());
        } catch (InterruptedIOException e) {
            Thread.currentThread().interrupt();
        } catch (IOException e) {
            child.broken(process, e);
            if (id != null && inputs.remove(id) != null) {
                collector.fail(input);
            }
        }
    }

    @Override
    public void cleanup() {
        if (child == null) {
            super.cleanup();
            return;
        }
        timer.shutdownNow();
        child.close();
    }

    // --- from the component

    private void readAll(ComponentProcess first, TopologyContext context) {
        ComponentProcess process = first;
        while (process != null) {
            logs.setUpContext(ShellBolt.class, process.shown(command, context.getThisComponentId()), context);
            process.expect(true);
            Throwable cause;
            try {
                cause = readAll(process);
            } catch (Throwable t) {
                cause = t;
            }
            process = child.replace(process, cause);
        }
    }

    /** Never returns normally. */
    private Throwable readAll(ComponentProcess process) throws Exception {
        long logged = 0;
        while (true) {
            ShellMsg message = process.read();
            if (process.heardAt() - logged > LOG_NS) {
                logged = process.heardAt();
                process.logPrinted();
            }
            handle(process, message);
        }
    }

    private void handle(ComponentProcess process, ShellMsg message) throws Exception {
        switch (message.getCommand()) {
            case "emit":
                emit(process, message);
                break;
            case "ack":
                collector.ack(forget(message));
                break;
            case "fail":
                collector.fail(forget(message));
                break;
            case "error":
                child.report(new Exception("Shell Process Exception: " + message.getMsg()));
                break;
            case "log":
                logs.log(message);
                break;
            case "metrics":
                throw Child.unregistered(message);
            default: // sync: that it came is what counts
        }
    }

    private Tuple forget(ShellMsg message) {
        Tuple tuple = inputs.remove((String) message.getId());
        if (tuple == null) {
            throw new IllegalArgumentException(message.getCommand() + " of the id " + message.getId()
                + ", which is no tuple's or was acked or failed before");
        }
        return tuple;
    }

    private void emit(ComponentProcess process, ShellMsg message) throws Exception {
        List<Tuple> anchors = null;
        if (message.getAnchors() != null) {
            anchors = new ArrayList<>();
            for (String id : message.getAnchors()) {
                Tuple anchor = inputs.get(id);
                if (anchor == null) {
                    throw new IllegalArgumentException("a tuple is anchored to " + id + ", which was acked or failed before");
                }
                anchors.add(anchor);
            }
        }
        if (message.getTask() != 0) {
            collector.emitDirect((int) message.getTask(), message.getStream(), anchors, message.getTuple());
            return;
        }
        List<Integer> tasks = collector.emit(message.getStream(), anchors, message.getTuple());
        if (message.areTaskIdsNeeded()) {
            process.taskIds(tasks);
        }
    }

    // --- its life

    /** Twice in a second. A component takes the absence of heartbeats for the absence of its worker. */
    private void beat() {
        ComponentProcess process = null;
        try {
            process = child.current();
            if (process != null) {
                process.dialect().heartbeat();
            }
        } catch (IOException e) {
            child.broken(process, e);
        } catch (RuntimeException e) {
            LOG.debug("No heartbeat to {}: {}", child, e.toString());
        }
    }

    private final class Life implements Child.Owner {
        @Override
        public void ended() {
            for (String id : new ArrayList<>(inputs.keySet())) {
                Tuple tuple = inputs.remove(id);
                if (tuple != null) {
                    collector.fail(tuple);
                }
            }
        }

        @Override
        public void report(Throwable error) {
            collector.reportError(error);
        }
    }
}
