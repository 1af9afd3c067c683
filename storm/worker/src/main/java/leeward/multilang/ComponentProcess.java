package leeward.multilang;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.storm.multilang.NoOutputException;
import org.apache.storm.multilang.ShellMsg;
import org.apache.storm.utils.ShellProcess;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** One process of a shell component, from its start to its end. One thread reads from it; any may write. */
final class ComponentProcess {
    /** A process that has closed its output ends by itself within this, or is killed. */
    private static final long EXIT_MS = 1_000;
    /** A thread that is writing to a process sees its end within this. */
    private static final long WRITER_MS = 5_000;
    private static final int PRINTED_BYTES = 64 * 1024;
    private static final int KEPT_CHARS = 4_000;

    /** The handshake, on a pipe that is open; gives the process' own id. */
    interface Handshake {
        Number over(FrameSerializer pipe) throws IOException, NoOutputException;
    }

    /** Counts the processes of one component. */
    final int number;
    private final Process process;
    private final FrameSerializer pipe = new FrameSerializer();
    private final Absence absence;
    private final long patienceNs;
    private final Logger printer;
    private final StringBuilder printed = new StringBuilder();
    private volatile long pid;
    private Dialect dialect;
    private volatile boolean expected;
    /** Its last message is being handled. The time of that, as while Storm holds an emit back, is not its silence. */
    private volatile boolean handled;
    private volatile long heardAt;
    private volatile Throwable cause;
    /** As of the last look. */
    private long lastHeardAt;
    private long silentSince;
    private long brokenAt;
    private long deadAt;

    /**
     * A process that was launched, and has not been spoken to.
     *
     * @param patienceNs how long an expected message may take
     * @param printer    where goes what it prints
     */
    ComponentProcess(int number, Process process, Absence absence, long patienceNs, Logger printer) {
        this.number = number;
        this.process = process;
        this.absence = absence;
        this.patienceNs = patienceNs;
        this.printer = printer;
        this.pid = pidOf(process);
    }

    /** Java 8 cannot tell: then the process is not looked at until it has told its id itself. */
    private static long pidOf(Process process) {
        try {
            return ((Number) Process.class.getMethod("pid").invoke(process)).longValue();
        } catch (ReflectiveOperationException e) {
            return 0;
        }
    }

    void connect(Handshake handshake) throws IOException, NoOutputException {
        pipe.open(process.getOutputStream(), process.getInputStream());
        pid = handshake.over(pipe).longValue();
        dialect = pipe.dialect();
        expect(false);
    }

    long pid() {
        return pid;
    }

    /** How it is spoken to, once connected. */
    Dialect dialect() {
        return dialect;
    }

    /** Whether a message is to come from it; one that does not come in time is the end of the process. */
    void expect(boolean message) {
        heardAt = System.nanoTime();
        handled = false;
        expected = message;
    }

    /** The next message; waits for it. */
    ShellMsg read() throws IOException, NoOutputException {
        handled = false;
        ShellMsg message = dialect.read();
        heardAt = System.nanoTime();
        handled = true;
        return message;
    }

    /** Answers the emit that was read last. A process that does not take the answer is silent. */
    void taskIds(List<Integer> tasks) throws IOException {
        handled = false;
        dialect.taskIds(tasks);
    }

    /** When the last message came, in terms of {@link System#nanoTime}. */
    long heardAt() {
        return heardAt;
    }

    /** Something is wrong with it: it is to be replaced. It may still be sending why, so it has a second to end. */
    void fail(Throwable why) {
        if (cause == null) {
            cause = why;
        }
    }

    /** The first thing that went wrong. */
    Throwable cause() {
        return cause;
    }

    /**
     * Kills the process if it has been stopped or silent for too long, or does not end although it failed. Does not
     * wait.
     *
     * @return why it cannot be replaced; null as long as it can
     */
    IOException look(long now) {
        logPrinted();
        if (!process.isAlive()) {
            deadAt = deadAt == 0 ? now : deadAt;
            return now - deadAt > TimeUnit.MILLISECONDS.toNanos(WRITER_MS) && pipe.waits() ? new IOException(
                "process " + pid + " has ended, but a process that it started holds its pipe open") : null;
        }
        if (cause != null) {
            brokenAt = brokenAt == 0 ? now : brokenAt;
            if (now - brokenAt >= TimeUnit.MILLISECONDS.toNanos(EXIT_MS)) {
                kill();
            }
        } else if (pid != 0 && absence.tooLong(Absence.state(pid), now)) {
            fail(new IOException("process " + pid + " was stopped for longer than " + Child.AWAY + " allows"));
            kill();
        } else if (silentNs(now) > patienceNs) {
            fail(new IOException("process " + pid + " has sent nothing for "
                + TimeUnit.NANOSECONDS.toMillis(now - silentSince)
                + " ms, longer than topology.subprocess.timeout.secs"));
            kill();
        }
        return null;
    }

    /** For how long the worker has waited for the process in vain, counted from look to look. */
    private long silentNs(long now) {
        long heard = heardAt;
        if (!expected || handled || heard != lastHeardAt) {
            lastHeardAt = heard;
            silentSince = now;
        }
        return now - silentSince;
    }

    /** As Storm's log handlers want to have it: they ask for its id and its component's name. */
    ShellProcess shown(String[] command, String component) {
        ShellProcess shown = new ShellProcess(command);
        shown.pid = pid;
        shown.componentName = component;
        shown.serializer = pipe;
        return shown;
    }

    /** Ends it as Storm does when the component is shut down. */
    void terminate() {
        process.destroy();
    }

    /** On a thread of its own, as closing the pipe waits for whoever is writing to it. */
    void kill() {
        Child.daemon(process::destroyForcibly, "leeward-kill-" + pid).start();
    }

    /**
     * Sees to its end, once nobody reads from it any more. Afterwards nothing is written to it.
     *
     * @return the exit code
     * @throws IOException if a thread goes on writing to it
     */
    int end(String pidDir) throws IOException, InterruptedException {
        if (dialect != null) {
            dialect.end();
        }
        if (!process.waitFor(EXIT_MS, TimeUnit.MILLISECONDS)) {
            kill();
        }
        if (!pipe.closeOutput(WRITER_MS) || !process.waitFor(WRITER_MS, TimeUnit.MILLISECONDS)) {
            throw new IOException("process " + pid + " does not end, or a process that it started holds its pipe open");
        }
        logPrinted();
        process.destroyForcibly(); // it has ended: this closes the pipe
        if (pid != 0 && pidDir != null) {
            // Storm's supervisor signals every process that has a file here, and the id may be another's by then
            new File(pidDir, Long.toString(pid)).delete();
        }
        return process.exitValue();
    }

    /** Passes on what it has printed since; not more than a part of it at a time. */
    synchronized void logPrinted() {
        try {
            InputStream errors = process.getErrorStream();
            int count = Math.min(errors.available(), PRINTED_BYTES);
            if (count > 0) {
                byte[] bytes = new byte[count];
                String text = new String(bytes, 0, errors.read(bytes), StandardCharsets.UTF_8);
                printer.info(text);
                printed.append(text);
                printed.delete(0, Math.max(0, printed.length() - KEPT_CHARS));
            }
        } catch (IOException e) {
            printer.debug("the error stream of process {} is closed", pid);
        }
    }

    /** The end of what it printed, on lines of their own; empty if it was silent. */
    synchronized String lastPrinted() {
        logPrinted();
        return printed.length() == 0 ? "" : "\n" + printed.toString().trim();
    }
}
