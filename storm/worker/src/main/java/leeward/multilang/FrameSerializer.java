package leeward.multilang;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.storm.multilang.BoltMsg;
import org.apache.storm.multilang.ISerializer;
import org.apache.storm.multilang.NoOutputException;
import org.apache.storm.multilang.ShellMsg;
import org.apache.storm.multilang.SpoutMsg;
import org.apache.storm.task.TopologyContext;

/**
 * Speaks to one shell component in the form that it understands.
 *
 * <p>The handshake is Storm's own, in JSON, with one key more: {@code "leeward.pipe": {"version": 2, "ids": ...}}. A
 * component that answers its pid together with {@code "leeward.pipe": 2} gets and sends binary frames from then on; any
 * other one, a stock streamparse component say, goes on in JSON. So both may be in one topology.
 *
 * <p>{@code ids} tells whether tuples travel with their ids. Without ackers Storm has no use for anchors and acks: a
 * component then only says how many tuples it has taken. {@link PipeBolt} knows that, Storm's ShellBolt does not.
 */
public final class FrameSerializer implements ISerializer {
    private static final long serialVersionUID = 1L;

    static final String OFFER = "leeward.pipe";
    static final int VERSION = 2;
    private static final String ACKERS = "topology.acker.executors";

    private transient PipeInput input;
    private transient BatchedOutput output;
    private transient Dialect dialect;

    @Override
    public void initialize(OutputStream processIn, InputStream processOut) {
        Starting.HERE.begin();
        open(processIn, processOut);
    }

    /** Takes the streams of a process that does not count among those with which the worker starts. */
    void open(OutputStream processIn, InputStream processOut) {
        input = new PipeInput(processOut);
        output = new BatchedOutput(processIn);
    }

    /** From now on nothing is written; false if another thread is still writing after that time. */
    boolean closeOutput(long patienceMs) throws InterruptedException {
        return output.close(patienceMs);
    }

    /** Whether the reading thread waits for input. */
    boolean waits() {
        return input.waits();
    }

    @Override
    public Number connect(Map<String, Object> conf, TopologyContext context) throws IOException, NoOutputException {
        try {
            return shakeHands(conf, context);
        } finally {
            Starting.HERE.end();
        }
    }

    /** The handshake. */
    Number shakeHands(Map<String, Object> conf, TopologyContext context) throws IOException, NoOutputException {
        return connect(conf, context.toJSONString(), context.getPIDDir(),
            "task " + context.getThisTaskId() + " of component '" + context.getThisComponentId() + "'");
    }

    /** The handshake, apart from Storm's context; {@code task} names the component in errors. */
    Number connect(Map<String, Object> conf, String contextJson, String pidDir, String task)
        throws IOException, NoOutputException {
        boolean ids = !Integer.valueOf(0).equals(toInt(conf.get(ACKERS)));
        Map<String, Object> offer = new LinkedHashMap<>();
        offer.put("version", VERSION);
        offer.put("ids", ids);
        StringBuilder hello = new StringBuilder(1 << 14);
        hello.append("{\"").append(OFFER).append("\":");
        Json.print(offer, hello);
        hello.append(",\"pidDir\":");
        Json.print(pidDir, hello);
        hello.append(",\"conf\":");
        Json.print(conf, hello);
        hello.append(",\"context\":").append(contextJson).append('}');
        JsonDialect json = new JsonDialect(input, output, task);
        json.send(hello);
        Object answer = Json.parse(input.readText(task));
        Object pid = answer instanceof Map ? ((Map<?, ?>) answer).get("pid") : null;
        if (!(pid instanceof Number)) {
            throw new IOException(task + " answered the handshake with " + answer + ", not with its pid");
        }
        boolean binary = Long.valueOf(VERSION).equals(((Map<?, ?>) answer).get(OFFER));
        dialect = binary ? new BinaryDialect(input, output, task, ids) : json;
        return (Number) pid;
    }

    private static Integer toInt(Object value) {
        return value instanceof Number ? Integer.valueOf(((Number) value).intValue()) : null;
    }

    /** How this component is spoken to, once connected. */
    Dialect dialect() {
        return dialect;
    }

    @Override
    public ShellMsg readShellMsg() throws IOException, NoOutputException {
        return dialect.read();
    }

    @Override
    public void writeBoltMsg(BoltMsg message) throws IOException {
        if (!dialect.ids()) {
            throw new IOException("a bolt that is sent tuples without ids must be a " + PipeBolt.class.getName());
        }
        List<Object> values = message.getTuple();
        dialect.tuple(message.getId(), message.getComp(), message.getStream(), message.getTask(), -1,
            values == null ? Collections.emptyList() : values);
    }

    @Override
    public void writeSpoutMsg(SpoutMsg message) throws IOException {
        dialect.command(message.getCommand(), message.getId());
    }

    @Override
    public void writeTaskIds(List<Integer> taskIds) throws IOException {
        dialect.taskIds(taskIds);
    }
}
