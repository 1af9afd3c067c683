package leeward.multilang;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import org.apache.storm.Config;
import org.apache.storm.multilang.ShellMsg;
import org.apache.storm.task.OutputCollector;
import org.apache.storm.task.ShellBolt;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.tuple.Tuple;
import org.apache.storm.utils.ShellLogHandler;
import org.apache.storm.utils.ShellProcess;
import org.apache.storm.utils.ShellUtils;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Storm's ShellBolt without a queue, a map entry, an ack and a look at the error stream for each tuple: the executor's
 * own thread puts tuples into the pipe's next batch, another reads what comes back.
 *
 * <p>With another serializer than {@link FrameSerializer} it is Storm's ShellBolt.
 */
public final class PipeBolt extends ShellBolt {
    private static final long serialVersionUID = 1L;
    private static final Logger LOG = LoggerFactory.getLogger(PipeBolt.class);
    /** Storm's exit code of a worker that has lost a shell component. */
    private static final int LOST = 11;
    /** What the component prints is passed on to the log this often; one that prints more than a pipe holds waits. */
    private static final long LOG_MS = 20;

    private final String[] command;
    private transient ShellProcess process;
    private transient Dialect dialect;
    private transient OutputCollector collector;
    private transient ShellLogHandler logs;
    private transient ScheduledExecutorService timer;
    /** Tuples under way by id; stays empty where tuples have none. */
    private transient Map<String, Tuple> inputs;
    private transient long patienceMs;
    private transient volatile long heardAt;
    private transient volatile boolean running;
    private transient volatile RuntimeException failure;

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
        Object patience = conf.getOrDefault(Config.TOPOLOGY_SUBPROCESS_TIMEOUT_SECS,
            conf.get(Config.SUPERVISOR_WORKER_TIMEOUT_SECS));
        patienceMs = TimeUnit.SECONDS.toMillis(((Number) patience).longValue());
        process = new ShellProcess(command);
        LOG.info("Launched subprocess with pid {}", process.launch(conf, context, true));
        dialect = ((FrameSerializer) process.serializer).dialect();
        logs = ShellUtils.getLogHandler(conf);
        logs.setUpContext(ShellBolt.class, process, context);
        heardAt = System.currentTimeMillis();
        running = true;
        String name = context.getThisComponentId() + "-" + context.getThisTaskId();
        daemon(this::readAll, "leeward-read-" + name).start();
        timer = Executors.newSingleThreadScheduledExecutor(work -> daemon(work, "leeward-beat-" + name));
        timer.scheduleAtFixedRate(this::beat, 1, 1, TimeUnit.SECONDS);
    }

    private static Thread daemon(Runnable work, String name) {
        Thread thread = new Thread(work, name);
        thread.setDaemon(true);
        return thread;
    }

    @Override
    public void execute(Tuple input) {
        if (dialect == null) {
            super.execute(input);
            return;
        }
        if (failure != null) {
            throw failure;
        }
        String id = null;
        if (dialect.ids()) {
            id = Long.toString(ThreadLocalRandom.current().nextLong());
            inputs.put(id, input);
        }
        try {
            dialect.tuple(id, input.getSourceComponent(), input.getSourceStreamId(), input.getSourceTask(),
                input.getValues());
        } catch (InterruptedIOException e) {
            Thread.currentThread().interrupt();
        } catch (IOException e) {
            die(e);
        }
    }

    @Override
    public void cleanup() {
        if (dialect == null) {
            super.cleanup();
            return;
        }
        running = false;
        timer.shutdownNow();
        process.destroy();
    }

    // --- from the component

    private void readAll() {
        long logged = 0;
        while (running) {
            try {
                ShellMsg message = dialect.read();
                heardAt = System.currentTimeMillis();
                if (heardAt - logged > LOG_MS) {
                    logged = heardAt;
                    logPrinted();
                }
                handle(message);
            } catch (Throwable t) {
                die(t);
                return;
            }
        }
    }

    private void handle(ShellMsg message) throws Exception {
        switch (message.getCommand()) {
            case "emit":
                emit(message);
                break;
            case "ack":
                collector.ack(forget(message));
                break;
            case "fail":
                collector.fail(forget(message));
                break;
            case "error":
                collector.reportError(new Exception("Shell Process Exception: " + message.getMsg()));
                break;
            case "log":
                logs.log(message);
                break;
            case "metrics":
                throw new IllegalArgumentException("metric '" + message.getMetricName() + "' is not registered: a shell "
                    + "component cannot register one; publish it through self.counters");
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

    private void emit(ShellMsg message) throws Exception {
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
            dialect.taskIds(tasks);
        }
    }

    // --- its life

    /** Once in a second. */
    private void beat() {
        try {
            logPrinted();
            long silent = System.currentTimeMillis() - heardAt;
            if (silent > patienceMs) {
                throw new IllegalStateException("subprocess heartbeat timeout: nothing heard for " + silent + " ms");
            }
            dialect.heartbeat();
        } catch (Exception e) {
            die(e);
        }
    }

    private synchronized void logPrinted() {
        process.logErrorStream();
    }

    private synchronized void die(Throwable cause) {
        if (!running) {
            return; // the bolt is shutting down, or has told why already
        }
        running = false;
        String about = process.getProcessInfoString() + process.getProcessTerminationInfoString();
        failure = new RuntimeException(about, cause);
        LOG.error("Halting process: the component died. Command: {}, {}", Arrays.toString(command), about, cause);
        collector.reportError(cause);
        System.exit(LOST);
    }
}
