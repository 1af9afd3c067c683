package leeward.multilang;

import java.io.IOException;
import java.util.ArrayDeque;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import org.apache.storm.Config;
import org.apache.storm.multilang.NoOutputException;
import org.apache.storm.multilang.ShellMsg;
import org.apache.storm.spout.ShellSpout;
import org.apache.storm.spout.SpoutOutputCollector;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.utils.ShellLogHandler;
import org.apache.storm.utils.ShellUtils;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Storm's ShellSpout, but a process that is lost is replaced, and the worker lives on ({@link Child}). As long as there
 * is none nothing is emitted, and the executor does its other work.
 *
 * <p>What a lost process emitted is acked and failed to nobody: the next one does not know those ids.
 *
 * <p>With another serializer than {@link FrameSerializer} it is Storm's ShellSpout.
 */
public final class PipeSpout extends ShellSpout {
    private static final long serialVersionUID = 1L;
    private static final Logger LOG = LoggerFactory.getLogger(PipeSpout.class);

    /** The id of a tuple, and the number of the process that emitted it. */
    private static final class Emitted {
        final int process;
        final Object id;

        Emitted(int process, Object id) {
            this.process = process;
            this.id = id;
        }

        @Override
        public String toString() {
            return String.valueOf(id);
        }
    }

    private final String[] command;
    private transient Child child;
    private transient SpoutOutputCollector collector;
    private transient TopologyContext context;
    private transient ShellLogHandler logs;
    /** Commands that are still to be sent, in their order. */
    private transient Queue<Runnable> commands;
    private transient boolean sending;
    private transient boolean active;
    /** The process that was told whether the spout is active. */
    private transient ComponentProcess told;
    private transient long logged;

    public PipeSpout(String command, String script) {
        super(command, script);
        this.command = new String[] {command, script};
    }

    @Override
    public void open(Map<String, Object> conf, TopologyContext topology, SpoutOutputCollector out) {
        if (!FrameSerializer.class.getName().equals(conf.get(Config.TOPOLOGY_MULTILANG_SERIALIZER))) {
            super.open(conf, topology, out);
            return;
        }
        collector = out;
        context = topology;
        logs = ShellUtils.getLogHandler(conf);
        commands = new ArrayDeque<>();
        child = Child.of(conf, context, command, new Life());
        child.start();
    }

    @Override
    public void nextTuple() {
        if (child == null) {
            super.nextTuple();
        } else {
            tell("next", "");
        }
    }

    @Override
    public void ack(Object id) {
        if (child == null) {
            super.ack(id);
        } else {
            tell("ack", id);
        }
    }

    @Override
    public void fail(Object id) {
        if (child == null) {
            super.fail(id);
        } else {
            tell("fail", id);
        }
    }

    @Override
    public void activate() {
        if (child == null) {
            super.activate();
            return;
        }
        active = true;
        tell("activate", "");
    }

    @Override
    public void deactivate() {
        if (child == null) {
            super.deactivate();
            return;
        }
        active = false;
        tell("deactivate", "");
    }

    @Override
    public void close() {
        if (child == null) {
            super.close();
        } else {
            child.close();
        }
    }

    /**
     * Sends a command and takes what the process emits until it has carried it out; nothing if there is no process.
     *
     * <p>Without ackers Storm acks a tuple while it is emitted, which is within an exchange: the process reads no
     * command then. Such an ack is sent when the exchange is over, and before the next command of Storm. With a process
     * that emits for each ack this would never end, so acks of what it emits for an ack wait for the next call.
     */
    private void tell(String name, Object id) {
        commands.add(() -> send(name, id));
        if (sending) {
            return;
        }
        sending = true;
        try {
            sendCollected(); // what was left over, and this command
            sendCollected(); // what Storm has acked meanwhile
        } finally {
            sending = false;
        }
    }

    /** Sends the commands that there are now, and leaves those that are added meanwhile. */
    private void sendCollected() {
        for (int left = commands.size(); left > 0; left--) {
            commands.remove().run();
        }
    }

    private void send(String name, Object id) {
        ComponentProcess process = child.current();
        if (process == null) {
            return;
        }
        Object own = id;
        if (id instanceof Emitted) {
            if (((Emitted) id).process != process.number) {
                return;
            }
            own = ((Emitted) id).id;
        }
        try {
            if (process != told) {
                told = process;
                logs.setUpContext(ShellSpout.class, process.shown(command, context.getThisComponentId()), context);
                if (active && !name.equals("activate")) {
                    exchange(process, "activate", "");
                }
            }
            exchange(process, name, own);
        } catch (Throwable cause) {
            child.replaceSoon(process, cause);
        }
    }

    private void exchange(ComponentProcess process, String name, Object id) throws IOException, NoOutputException {
        process.expect(true);
        process.dialect().command(name, id);
        ShellMsg message = process.read();
        while (!message.getCommand().equals("sync")) {
            handle(process, message);
            message = process.read();
        }
        process.expect(false);
        if (process.heardAt() - logged > PipeBolt.LOG_NS) {
            logged = process.heardAt();
            process.logPrinted();
        }
    }

    private void handle(ComponentProcess process, ShellMsg message) throws IOException {
        switch (message.getCommand()) {
            case "emit":
                emit(process, message);
                break;
            case "error":
                child.report(new Exception("Shell Process Exception: " + message.getMsg()));
                break;
            case "log":
                logs.log(message);
                break;
            case "metrics":
                throw Child.unregistered(message);
            default:
                throw new IOException(child + " sent the command '" + message.getCommand()
                    + "', which a spout's process may not send");
        }
    }

    private void emit(ComponentProcess process, ShellMsg message) throws IOException {
        Object id = message.getId() == null ? null : new Emitted(process.number, message.getId());
        if (message.getTask() != 0) {
            collector.emitDirect((int) message.getTask(), message.getStream(), message.getTuple(), id);
            return;
        }
        List<Integer> tasks = collector.emit(message.getStream(), message.getTuple(), id);
        if (message.areTaskIdsNeeded()) {
            process.taskIds(tasks);
        }
    }

    private final class Life implements Child.Owner {
        @Override
        public void ended() {
            LOG.debug("{} emits nothing until its next process has started", child);
        }

        @Override
        public void report(Throwable error) {
            collector.reportError(error);
        }
    }
}
