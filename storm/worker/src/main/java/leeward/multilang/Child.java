package leeward.multilang;

import java.io.File;
import java.io.IOException;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.storm.Config;
import org.apache.storm.multilang.NoOutputException;
import org.apache.storm.multilang.ShellMsg;
import org.apache.storm.task.TopologyContext;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Keeps the process of one component running: a process that ends, that is stopped for too long or that does not answer
 * is replaced by a new one, and the worker lives on. What the old process had received is lost; Leeward's protocol
 * notices, as the new process has no state.
 *
 * <p>The thread that reads from the process calls {@link #replace} when it can read no more. So no message of a process
 * is handled after the next one was started.
 */
final class Child {
    /** Topology setting: seconds for which a process may be stopped before it is killed; 0: for ever. */
    static final String AWAY = "leeward.away.secs";

    private static final Logger LOG = LoggerFactory.getLogger(Child.class);
    private static final double AWAY_DEFAULT = 2;
    private static final int MOST_STARTS = 5;
    private static final long WITHIN_NS = TimeUnit.MINUTES.toNanos(1);
    /** The exit code of a process that SIGTERM has ended, which Storm sends to all processes of a worker. */
    private static final int TERMINATED = 143;
    private static final long LEAVING_MS = 1_000;
    /** Storm's exit code of a worker that has lost a shell component. */
    private static final int LOST = 11;
    /** So many errors wait for Storm to take them. */
    private static final int MOST_REPORTS = 16;
    /** The thread that reports ends when nothing has been reported for so long. */
    private static final long LEISURE_MS = 5_000;
    /** A worker that ends waits so long for its last report. */
    private static final long LAST_REPORT_MS = 3_000;
    private static volatile boolean leaving;

    static {
        try {
            Runtime.getRuntime().addShutdownHook(new Thread(() -> leaving = true, "leeward-leaving"));
        } catch (IllegalStateException e) {
            leaving = true;
        }
    }

    /** The bolt or spout. */
    interface Owner {
        /** A process has ended; nothing of it will be handled any more, and the next one is not started yet. */
        void ended();

        /** For Storm's UI; takes long while ZooKeeper is away. */
        void report(Throwable error);

        /** The process cannot be kept running: ends the worker. */
        default void giveUp() {
            System.exit(LOST);
        }
    }

    /** How the process is started, and how much is put up with. */
    static final class Settings {
        final String name;
        final String component;
        final String[] command;
        final File folder;
        final String pidDir;
        final long awayNs;
        final long patienceNs;

        Settings(String name, String component, String[] command, File folder, String pidDir,
                 Map<String, Object> conf) {
            this.name = name;
            this.component = component;
            this.command = command;
            this.folder = folder;
            this.pidDir = pidDir;
            Object patience = conf.getOrDefault(Config.TOPOLOGY_SUBPROCESS_TIMEOUT_SECS,
                conf.get(Config.SUPERVISOR_WORKER_TIMEOUT_SECS));
            this.patienceNs = TimeUnit.SECONDS.toNanos(((Number) patience).longValue());
            Object away = conf.getOrDefault(AWAY, AWAY_DEFAULT);
            if (!(away instanceof Number) || ((Number) away).doubleValue() < 0) {
                throw new IllegalArgumentException("topology setting " + AWAY + " is '" + away
                    + "': give a number of seconds, or 0 if a stopped process shall be waited for");
            }
            this.awayNs = (long) (((Number) away).doubleValue() * TimeUnit.SECONDS.toNanos(1));
        }
    }

    private final Settings settings;
    private final ComponentProcess.Handshake handshake;
    private final Owner owner;
    private final Starts starts = new Starts(MOST_STARTS, WITHIN_NS);
    private final AtomicBoolean givenUp = new AtomicBoolean();
    private final ThreadPoolExecutor reports;
    private int count;
    /** The process in use; null while there is none. Written under this object's monitor. */
    private volatile ComponentProcess current;
    /** The process that was launched last; connected or not. */
    private volatile ComponentProcess newest;
    private ComponentProcess replaced; // the last one whose end `replaceSoon` was told of
    private volatile boolean closed;
    private volatile RuntimeException failure;

    Child(Settings settings, ComponentProcess.Handshake handshake, Owner owner) {
        this.settings = settings;
        this.handshake = handshake;
        this.owner = owner;
        this.reports = new ThreadPoolExecutor(0, 1, LEISURE_MS, TimeUnit.MILLISECONDS,
            new ArrayBlockingQueue<>(MOST_REPORTS), work -> daemon(work, "leeward-report-" + settings.name));
    }

    /** The child of a task. */
    static Child of(Map<String, Object> conf, TopologyContext context, String[] command, Owner owner) {
        Settings settings = new Settings(context.getThisComponentId() + "-" + context.getThisTaskId(),
            context.getThisComponentId(), command, new File(context.getCodeDir()), context.getPIDDir(), conf);
        return new Child(settings, pipe -> pipe.shakeHands(conf, context), owner);
    }

    /** Of a metric, which no shell component can register. */
    static RuntimeException unregistered(ShellMsg message) {
        return new IllegalArgumentException("metric '" + message.getMetricName() + "' is not registered: a shell "
            + "component cannot register one; publish it through self.counters");
    }

    static Thread daemon(Runnable work, String name) {
        Thread thread = new Thread(work, name);
        thread.setDaemon(true);
        return thread;
    }

    /** Starts the first process and waits until it is connected. */
    ComponentProcess start() {
        Watch.add(this);
        Starting.HERE.begin();
        try {
            ComponentProcess first = launch();
            publish(first);
            return first;
        } catch (IOException | NoOutputException | RuntimeException e) {
            close();
            throw new RuntimeException("the process of " + this + " did not start. Command: "
                + Arrays.toString(settings.command) + (newest == null ? "" : newest.lastPrinted()), e);
        } finally {
            Starting.HERE.end();
        }
    }

    /** The process in use; null while there is none. */
    ComponentProcess current() {
        if (failure != null) {
            throw failure;
        }
        return current;
    }

    /** The process in use; waits for one. Null when the component has been closed. */
    ComponentProcess await() throws InterruptedException {
        ComponentProcess process = current();
        return process == null ? awaitNext() : process;
    }

    private synchronized ComponentProcess awaitNext() throws InterruptedException {
        while (current() == null && !closed) {
            wait();
        }
        return current;
    }

    /** Writing to the process failed. Its reader will read what it still has to say, and then replace it. */
    void broken(ComponentProcess process, Throwable cause) {
        process.fail(cause);
        synchronized (this) {
            if (current == process) {
                current = null;
            }
        }
    }

    /**
     * Replaces a process from which nobody reads any more, on another thread; {@link #current} is null until then.
     *
     * <p>Once, however often its loss is found. An error, as of a full stack, leaves that to whoever finds it next.
     */
    void replaceSoon(ComponentProcess process, Throwable cause) {
        broken(process, cause);
        synchronized (this) {
            if (replaced != process) {
                daemon(() -> replace(process, cause), "leeward-start-" + settings.name).start();
                replaced = process;
            }
        }
    }

    /**
     * Replaces a process from which nobody reads any more.
     *
     * @return the new one; null if the component is closed or was given up
     */
    ComponentProcess replace(ComponentProcess process, Throwable cause) {
        broken(process, cause);
        try {
            Throwable why = process.cause();
            if (why instanceof Error) {
                giveUp("the worker itself is in trouble", why, process);
                return null;
            }
            if (!lay(process, why)) {
                return null;
            }
            while (starts.another(System.nanoTime())) {
                try {
                    ComponentProcess next = launch();
                    if (!publish(next)) {
                        return null;
                    }
                    LOG.info("Started process {} of {} in place of {}", next.pid(), this, process.pid());
                    report(new IOException("process " + process.pid() + " was lost, and process " + next.pid()
                        + " was started in its place", why));
                    return next;
                } catch (IOException | NoOutputException e) {
                    why = e;
                    if (!lay(newest, e)) {
                        return null;
                    }
                }
            }
            giveUp(MOST_STARTS + " new ones within a minute were lost, too", why, newest);
        } catch (IOException | RuntimeException e) {
            giveUp(String.valueOf(e.getMessage()), e, newest);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        return null;
    }

    /** Sees to the end of a process; whether another is wanted. */
    private boolean lay(ComponentProcess process, Throwable why) throws IOException, InterruptedException {
        if (isClosed()) {
            return false;
        }
        int code = process.end(settings.pidDir);
        for (long waited = 0; code == TERMINATED && waited < LEAVING_MS && !isClosed(); waited += 50) {
            Thread.sleep(50); // probably the whole worker is being ended, and this process was told first
        }
        if (isClosed()) {
            return false;
        }
        LOG.error("Process {} of {} was lost with exit code {}: {}{}", process.pid(), this, code,
            String.valueOf(why).trim(), process.lastPrinted());
        owner.ended();
        return true;
    }

    private ComponentProcess launch() throws IOException, NoOutputException {
        ProcessBuilder builder = new ProcessBuilder(settings.command);
        builder.directory(settings.folder);
        ComponentProcess process = new ComponentProcess(++count, builder.start(),
            new Absence(settings.awayNs, 2 * Watch.PERIOD_NS), settings.patienceNs,
            LoggerFactory.getLogger(settings.component));
        newest = process;
        process.expect(count > 1); // a worker that starts waits as long as Storm does
        process.connect(handshake);
        return process;
    }

    /** From now on it is the one in use; false if none is wanted any more. */
    private synchronized boolean publish(ComponentProcess process) {
        if (isClosed()) {
            process.terminate();
            return false;
        }
        current = process;
        notifyAll();
        return true;
    }

    /** For Storm's UI. Another thread waits until Storm takes it; while too many wait an error is only logged. */
    void report(Throwable error) {
        try {
            reports.execute(() -> {
                try {
                    owner.report(error);
                } catch (RuntimeException e) { // uncaught it would end the worker
                    LOG.warn("Storm did not take an error of {}: {}", this, error, e);
                }
            });
        } catch (RejectedExecutionException e) {
            LOG.warn("Storm takes no more errors of {}, such as this one", this, error);
        }
    }

    private boolean isClosed() {
        return closed || leaving;
    }

    /** Called every 250 ms; does not wait. */
    void look(long now) {
        ComponentProcess process = newest;
        if (process != null) {
            IOException hopeless = process.look(now);
            if (hopeless != null) {
                daemon(() -> giveUp(hopeless.getMessage(), hopeless, process), "leeward-give-up").start();
            }
        }
    }

    private void giveUp(String why, Throwable cause, ComponentProcess process) {
        if (isClosed() || !givenUp.compareAndSet(false, true)) {
            return;
        }
        Watch.remove(this);
        RuntimeException lost = new RuntimeException("the process of " + this + " is lost and is not replaced: " + why
            + ". Command: " + Arrays.toString(settings.command) + process.lastPrinted(), cause);
        synchronized (this) {
            failure = lost;
            current = null;
            notifyAll();
        }
        try {
            LOG.error("Halting process: the component died", lost);
            report(lost);
            reports.shutdown();
            reports.awaitTermination(LAST_REPORT_MS, TimeUnit.MILLISECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } finally {
            owner.giveUp();
        }
    }

    /** Ends the process; none is started any more. */
    void close() {
        Watch.remove(this);
        ComponentProcess process;
        synchronized (this) {
            closed = true;
            process = newest;
            current = null;
            notifyAll();
        }
        if (process != null) {
            process.terminate();
        }
    }

    @Override
    public String toString() {
        return settings.name;
    }
}
